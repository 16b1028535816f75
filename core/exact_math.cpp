// Power series after exact argument reductions; every operation is one that IEEE 754 rounds in one way only,
// so it matters neither where nor when (at run time or by the compiler) it is done.
#include "core/exact_math.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "core/error.h"

namespace tessera {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// ln 2 in two parts; products of the first with integers below 2^20 are exact.
constexpr double kLn2High = 0x1.62e42fee00000p-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

/// Nearest integer, ties to even, for |x| < 2^51.
double nearest(double x) {
  constexpr double kMagic = 0x1.8p52;
  return (x + kMagic) - kMagic;
}

/// 2^n for -1022 <= n <= 1023.
double power_of_two(int n) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

/// 1 + z / d[0] (1 + z / d[1] (1 + ...)): a power series whose neighbouring terms have the ratios z / d[i].
template <std::size_t N>
double nested(double z, const double (&d)[N]) {
  double sum = 1.0;
  for (std::size_t i = N; i-- > 0;) sum = 1.0 + z * sum / d[i];
  return sum;
}

/// x - n pi/2, |r| <= pi/4 and a little, and n mod 4.
struct Reduced {
  double r;
  int quadrant;
};

Reduced reduce(double x, const char* op) {
  if (!(x >= -8e8 && x <= 8e8)) {
    if (x != x || x == kInfinity || x == -kInfinity) return {kNaN, 0};
    fail(op, "|x| <= 8e8", std::to_string(x));
  }
  // pi/2 in parts of 24 bits: their products with n < 2^29 are exact, and so is the first difference.
  constexpr double kParts[] = {0x1.921fb4p+0, 0x1.4442d0p-24, 0x1.8469898cc5170p-48};
  const double n = nearest(x * 0x1.45f306dc9c883p-1);
  double r = x - n * kParts[0];
  r -= n * kParts[1];
  r -= n * kParts[2];
  return {r, static_cast<int>(static_cast<std::int64_t>(n) & 3)};
}

double sin_series(double r) {
  constexpr double kRatios[] = {-2. * 3,   -4. * 5,   -6. * 7,   -8. * 9,
                                -10. * 11, -12. * 13, -14. * 15, -16. * 17};
  return r * nested(r * r, kRatios);
}

double cos_series(double r) {
  constexpr double kRatios[] = {-1. * 2,  -3. * 4,   -5. * 6,   -7. * 8,
                                -9. * 10, -11. * 12, -13. * 14, -15. * 16};
  return nested(r * r, kRatios);
}

}  // namespace

double exact_exp(double x) {
  if (x != x) return x;
  if (x > 709.8) return kInfinity;
  if (x < -745.2) return 0.0;
  const double n = nearest(x * 0x1.71547652b82fep+0);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  constexpr double kRatios[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  // Two steps: 2^n itself may be out of range.
  const int half = static_cast<int>(n) / 2;
  return nested(r, kRatios) * power_of_two(half) * power_of_two(static_cast<int>(n) - half);
}

double exact_log(double x) {
  if (x != x || x == kInfinity) return x;
  if (x == 0.0) return -kInfinity;
  if (x < 0.0) return kNaN;
  double e = 0.0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    e = -54.0;
  }
  // x = 2^e m with m from sqrt(1/2) to sqrt(2); log m = 2 artanh(s), s = (m - 1) / (m + 1).
  constexpr std::uint64_t kRoot = 0x3fe6a09e667f3bcd;
  const auto offset = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(x) - kRoot);
  e += static_cast<double>(offset >> 52);
  const double m = std::bit_cast<double>((static_cast<std::uint64_t>(offset) & 0xfffffffffffff) + kRoot);
  const double f = m - 1.0;
  const double s = f / (m + 1.0);
  const double z = s * s;
  double series = 0.0;  // 2 (z/3 + z^2/5 + ...)
  for (double k = 23.0; k >= 3.0; k -= 2.0) series = z * (2.0 / k + series);
  // 2 s = f - s f keeps the error of s out of the largest term.
  return e * kLn2High + (f - (s * (f - series) - e * kLn2Low));
}

double exact_pow(double base, double exponent) {
  if (exponent == 0.0) return 1.0;
  return exact_exp(exponent * exact_log(base));
}

double exact_sin(double x) {
  const auto [r, quadrant] = reduce(x, "exact_sin");
  const double magnitude = quadrant % 2 == 0 ? sin_series(r) : cos_series(r);
  return quadrant < 2 ? magnitude : -magnitude;
}

double exact_cos(double x) {
  const auto [r, quadrant] = reduce(x, "exact_cos");
  const double magnitude = quadrant % 2 == 0 ? cos_series(r) : sin_series(r);
  return quadrant == 0 || quadrant == 3 ? magnitude : -magnitude;
}

}  // namespace tessera
