// exp, log, sin and the like on float vectors: our own polynomials in a stated order of Fma, so that every
// instruction set gives the same bits. The coefficients are minimax fits (Remez exchange, each coefficient
// rounded to float in turn before the next ones are fitted). Included inside foreach_target.
//
// Two habits keep very quiet input as fast as any other: polynomials run in Horner form, where an
// underflowing product is fused into a normal sum, and squares of the argument carry a tiny offset for the
// same reason.
#if defined(TESSERA_CORE_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_CORE_SIMD_MATH_INL_H_
#undef TESSERA_CORE_SIMD_MATH_INL_H_
#else
#define TESSERA_CORE_SIMD_MATH_INL_H_
#endif

#include "core/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// min(x, limit) and max(x, limit) that keep NaN on every target (Min and Max do not).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AtMost(D d, V x, float limit) {
  const V bound = hn::Set(d, limit);
  return hn::IfThenElse(hn::Gt(x, bound), bound, x);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AtLeast(D d, V x, float limit) {
  const V bound = hn::Set(d, limit);
  return hn::IfThenElse(hn::Lt(x, bound), bound, x);
}

/// c[0] + c[1] x + ... in Horner form.
template <class D, class V, size_t N>
HWY_INLINE V Polynomial(D d, V x, const float (&c)[N]) {
  V sum = hn::Set(d, c[N - 1]);
  for (size_t i = N - 1; i-- > 0;) sum = Fma(d, sum, x, hn::Set(d, c[i]));
  return sum;
}

/// x^2 + 2^-80: the offset is far below what counts where squares are used here.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GuardedSquare(D d, V x) {
  return Fma(d, x, x, hn::Set(d, 0x1p-80f));
}

/// x = n ln 2 + r with integer n and |r| <= 0.347.
template <class D, class V = hn::Vec<D>>
struct ExpParts {
  V half_scale;  ///< 2^(n - 1): finite for all n up to 128
  V expm1;       ///< exp(r) - 1
};

/// For -86.6 <= x <= 89.
template <class D, class V = hn::Vec<D>>
HWY_INLINE ExpParts<D> SplitExp(D d, V x) {
  const hn::RebindToSigned<D> di;
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
  const V magic = hn::Set(d, 0x1.8p23f);
  const V shifted = Fma(d, x, hn::Set(d, 1.44269502f), magic);
  const V n = hn::Sub(shifted, magic);
  // ln 2 in two parts, so that r keeps the accuracy of x.
  V r = Fma(d, n, hn::Set(d, -0.693147182f), x);
  r = Fma(d, n, hn::Set(d, 1.90465421e-9f), r);
  // exp(r) = 1 + r + r^2 q(r), fitted to 1.5e-8 |r| of relative error in expm1.
  static constexpr float kQ[] = {0.5f, 0.166665375f, 0.041666612f, 0.00836730096f, 0.00139170419f};
  const V q = Polynomial(d, r, kQ);
  const auto exponent = hn::ShiftLeft<23>(hn::Add(hn::BitCast(di, shifted), hn::Set(di, 126)));
  return {hn::BitCast(d, exponent), Fma(d, hn::Mul(r, q), r, r)};
}

/// e^x; results below 2.5e-38 are 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  const V lowest = hn::Set(d, -86.6f);
  const auto vanishes = hn::Lt(x, lowest);
  const ExpParts<D> e = SplitExp(d, hn::IfThenElse(vanishes, lowest, AtMost(d, x, 89.0f)));
  const V half = Fma(d, e.half_scale, e.expm1, e.half_scale);
  return hn::IfThenZeroElse(vanishes, hn::Add(half, half));
}

/// e^x - 1 without cancellation near 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Expm1(D d, V x) {
  const ExpParts<D> e = SplitExp(d, AtLeast(d, AtMost(d, x, 89.0f), -18.0f));
  const V half = Fma(d, e.half_scale, e.expm1, hn::Sub(e.half_scale, hn::Set(d, 0.5f)));
  return hn::Add(half, half);
}

/// 1 / (1 + e^-x)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(x))));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V limited = AtMost(d, hn::Abs(x), 9.2f);  // tanh rounds to 1 from 9.02 on
  const V e = Expm1(d, hn::Add(limited, limited));
  return hn::CopySign(hn::Div(e, hn::Add(e, hn::Set(d, 2.0f))), x);
}

/// The lower tail of the normal distribution at -a, for 0 <= a <= 12: exp of a polynomial in a. The error
/// times (1 + a) stays below 1e-9 up to a = 5.6; beyond it the polynomial falls on until exp gives 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V NormalTail(D d, V a) {
  static constexpr float kLogTail[] = {-0.693147182f,    -0.797884464f,   -0.318310708f,    -0.0363326594f,
                                       0.0047756047f,    4.79875489e-05f, -0.000226520482f, 6.59263096e-05f,
                                       -1.05416193e-05f, 9.50092669e-07f, -3.75414153e-08f};
  return Exp(d, Polynomial(d, a, kLogTail));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Erf(D d, V x) {
  const V a = hn::Abs(x);
  // erf(a) / a - 1 in a^2, for a <= 0.8
  static constexpr float kNear[] = {0.128379107f,   -0.376121461f,  0.112773515f,
                                    -0.0265665334f, 0.00462809671f, -0.000366430788f};
  const V near = Fma(d, a, Polynomial(d, GuardedSquare(d, a), kNear), a);
  const V tail = NormalTail(d, hn::Mul(AtMost(d, a, 8.0f), hn::Set(d, 1.41421354f)));
  const V far = Fma(d, tail, hn::Set(d, -2.0f), hn::Set(d, 1.0f));
  return hn::CopySign(hn::IfThenElse(hn::Gt(a, hn::Set(d, 0.8f)), far, near), x);
}

/// x times the normal distribution function of x, as relu(x) - |x| tail(|x|): no cancellation for negative x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Gelu(D d, V x) {
  const V a = AtMost(d, hn::Abs(x), 12.0f);
  return hn::Sub(AtLeast(d, x, 0.0f), hn::Mul(a, NormalTail(d, a)));
}

/// sin(r) for |r| a little above pi/2.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SinPolynomial(D d, V r) {
  static constexpr float kSin[] = {-0.166666672f, 0.00833335053f, -0.000198430702f, 2.76244918e-06f,
                                   -2.54350674e-08f};
  const V z = GuardedSquare(d, r);
  return Fma(d, r, hn::Mul(z, Polynomial(d, z, kSin)), r);
}

/// x where its sine means something; 0 beyond 2^22, where floats lie half a radian apart; NaN for infinities.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SinDomain(D d, V x) {
  return hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Set(d, 0x1p22f)), hn::Sub(x, x), x);
}

/// x - n (part pi) with pi in three pieces, for part 1 or 1/2; the first difference is exact.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SubtractPi(D d, V n, V x, float part) {
  V r = Fma(d, n, hn::Set(d, part * -3.14159274f), x);
  r = Fma(d, n, hn::Set(d, part * 8.74227766e-08f), r);
  return Fma(d, n, hn::Set(d, part * 3.43024902e-15f), r);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sin(D d, V x) {
  const hn::RebindToSigned<D> di;
  x = SinDomain(d, x);
  const V magic = hn::Set(d, 0x1.8p23f);
  const V shifted = Fma(d, x, hn::Set(d, 0.318309873f), magic);
  const V r = SubtractPi(d, hn::Sub(shifted, magic), x, 1.0f);
  const V flip = hn::BitCast(d, hn::ShiftLeft<31>(hn::BitCast(di, shifted)));  // (-1)^n
  return hn::Xor(SinPolynomial(d, r), flip);
}

/// cos(x) = -(-1)^k sin(x - (2 k + 1) pi/2)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Cos(D d, V x) {
  const hn::RebindToSigned<D> di;
  x = SinDomain(d, x);
  const V magic = hn::Set(d, 0x1.8p23f);
  const V shifted = hn::Add(Fma(d, x, hn::Set(d, 0.318309873f), hn::Set(d, -0.5f)), magic);
  const V k = hn::Sub(shifted, magic);
  const V r = SubtractPi(d, Fma(d, k, hn::Set(d, 2.0f), hn::Set(d, 1.0f)), x, 0.5f);
  const V flip = hn::BitCast(d, hn::ShiftLeft<31>(hn::BitCast(di, shifted)));
  return hn::Neg(hn::Xor(SinPolynomial(d, r), flip));
}

/// Natural logarithm: -inf at 0, NaN below.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto subnormal = hn::Lt(x, hn::Set(d, 0x1p-126f));
  const V scaled = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 0x1p25f)), x);
  // x = 2^e (1 + f), 1 + f from sqrt(1/2) to sqrt(2): the bits of sqrt(1/2) are taken off before the exponent
  // is read.
  const auto kRoot = hn::Set(di, 0x3f3504f3);
  const auto offset = hn::Sub(hn::BitCast(di, scaled), kRoot);
  const auto e = hn::ShiftRight<23>(offset);
  const auto mantissa = hn::Add(hn::And(offset, hn::Set(di, 0x007fffff)), kRoot);
  const V f = hn::Sub(hn::BitCast(d, mantissa), hn::Set(d, 1.0f));
  const V n = hn::Add(hn::ConvertTo(d, e), hn::IfThenElseZero(subnormal, hn::Set(d, -25.0f)));
  // log(1 + f) = f - f^2 / 2 + f^3 p(f)
  static constexpr float kLog[] = {0.333333164f, -0.250008136f, 0.20002313f, -0.166244507f,
                                   0.141805351f, -0.131276339f, 0.12884964f, -0.0786995068f};
  const V square = hn::Mul(f, f);
  V low = Fma(d, hn::Mul(square, f), Polynomial(d, f, kLog), hn::Mul(n, hn::Set(d, -1.90465421e-9f)));
  low = Fma(d, square, hn::Set(d, -0.5f), low);
  V y = Fma(d, n, hn::Set(d, 0.693147182f), hn::Add(f, low));
  const V infinity = hn::Inf(d);
  y = hn::IfThenElse(hn::Eq(x, infinity), x, y);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), y);
  return hn::IfThenElse(hn::Ge(x, hn::Zero(d)), y, hn::NaN(d));
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
