// The resampler against the sine that it should give: level, lag, stopband, lengths, independence of the
// pieces.
#include "codec/media/resampler.h"

#include "core/error.h"
#include "support.h"

namespace tessera::test {
namespace {

std::vector<float> resample(const std::vector<float>& x, int from, int to, size_t piece = 100000) {
  auto resampler = Resampler::create(from, to, 1);
  EXPECT_TRUE(resampler);
  std::vector<float> y;
  for (size_t at = 0; at < x.size(); at += piece) {
    EXPECT_TRUE(resampler->push(std::span(x).subspan(at, std::min(piece, x.size() - at)), y));
  }
  EXPECT_TRUE(resampler->flush(y));
  EXPECT_EQ(resampler->clipped(), 0);
  return y;
}

double power_db(const std::vector<float>& x, size_t margin) {
  double sum = 0;
  for (size_t t = margin; t + margin < x.size(); ++t) sum += static_cast<double>(x[t]) * x[t];
  return 10 * std::log10(sum / static_cast<double>(x.size() - 2 * margin));
}

struct Rates {
  int from, to;
};
class Resampling : public testing::TestWithParam<Rates> {};

// The difference to the ideal output bounds both level and lag: 0.001 samples of lag at 1 kHz would show as
// -72 dB.
TEST_P(Resampling, OneKilohertzComesOutInPlace) {
  const auto [from, to] = GetParam();
  const auto x = sine(1000, from, static_cast<size_t>(from));
  const auto y = resample(x, from, to);
  auto difference = sine(1000, to, y.size());
  ASSERT_EQ(y.size(), static_cast<size_t>(to));
  EXPECT_NEAR(power_db(y, 500), power_db(difference, 500), 1e-4);
  for (size_t t = 0; t < y.size(); ++t) difference[t] -= y[t];
  EXPECT_LT(power_db(difference, 500) - power_db(y, 500), -110);
}

TEST_P(Resampling, PiecesDoNotMatter) {
  const auto [from, to] = GetParam();
  const auto x = sine(777, from, 9001);
  const auto y = resample(x, from, to);
  for (const size_t piece : {1, 13, 4096, 5000}) EXPECT_EQ(resample(x, from, to, piece), y) << piece;
}

TEST_P(Resampling, LengthIsRoundedUp) {
  const auto [from, to] = GetParam();
  for (const size_t n : {0, 1, 2, 3, 100, 147, 1000, 4097}) {
    const int64_t expected = (static_cast<int64_t>(n) * to + from - 1) / from;
    EXPECT_EQ(Resampler::output_frames(static_cast<int64_t>(n), from, to), expected);
    EXPECT_EQ(resample(std::vector<float>(n, 0.25f), from, to).size(), static_cast<size_t>(expected)) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Resampling,
                         testing::Values(Rates{44100, 24000}, Rates{48000, 16000}, Rates{8000, 24000},
                                         Rates{11025, 16000}, Rates{24000, 48000}, Rates{192000, 16000}),
                         [](const auto& info) {
                           return std::to_string(info.param.from) + "to" + std::to_string(info.param.to);
                         });

TEST(Resampler, PassesUpToNineTenthsAndStopsAliases) {
  const double input = power_db(sine(10800, 44100, 44100), 0);
  EXPECT_NEAR(power_db(resample(sine(10800, 44100, 44100), 44100, 24000), 500), input, 0.001);
  for (const double hz : {12600.0, 15000.0, 20000.0}) {
    EXPECT_LT(power_db(resample(sine(hz, 44100, 44100), 44100, 24000), 500), input - 100) << hz;
  }
}

TEST(Resampler, AnImpulseStaysWhereItIs) {
  std::vector<float> x(441, 0.0f);
  x[147] = 1;  // 1/300 s: output frame 80 exactly
  const auto y = resample(x, 44100, 24000);
  ASSERT_EQ(y.size(), 240u);
  for (size_t k = 1; k <= 60; ++k) EXPECT_EQ(y[80 - k], y[80 + k]) << k;
  EXPECT_GT(y[80], 0.5f);
}

TEST(Resampler, UnusualRatiosStayInPlace) {
  const auto y = resample(sine(1000, 44101, 44101), 44101, 24000);
  auto difference = sine(1000, 24000, y.size());
  for (size_t t = 0; t < y.size(); ++t) difference[t] -= y[t];
  EXPECT_LT(power_db(difference, 500), -100);
}

TEST(Resampler, ChannelsDoNotMix) {
  const auto left = sine(500, 44100, 3000);
  const auto right = sine(900, 44100, 3000, 0.25);
  std::vector<float> both, out;
  for (size_t t = 0; t < left.size(); ++t) both.insert(both.end(), {left[t], right[t]});
  auto resampler = Resampler::create(44100, 24000, 2);
  ASSERT_TRUE(resampler && resampler->push(both, out) && resampler->flush(out));
  const auto l = resample(left, 44100, 24000), r = resample(right, 44100, 24000);
  ASSERT_EQ(out.size(), 2 * l.size());
  for (size_t t = 0; t < l.size(); ++t) {
    ASSERT_EQ(out[2 * t], l[t]);
    ASSERT_EQ(out[2 * t + 1], r[t]);
  }
}

TEST(Resampler, HeadroomIsSixteenAndSaysWhenItIsUsedUp) {
  std::vector<float> x(2000, 15.0f), y;
  x[1000] = 17.0f;
  x[1500] = std::nanf("");
  auto resampler = Resampler::create(48000, 24000, 1);
  ASSERT_TRUE(resampler && resampler->push(x, y) && resampler->flush(y));
  EXPECT_EQ(resampler->clipped(), 2);
  EXPECT_NEAR(y[250], 15.0f, 1e-3);
}

TEST(Resampler, EqualRatesChangeNothing) {
  const auto x = sine(700, 24000, 500, 30.0);
  std::vector<float> y;
  auto resampler = Resampler::create(24000, 24000, 1);
  ASSERT_TRUE(resampler && resampler->push(x, y) && resampler->flush(y));
  EXPECT_EQ(y, x);
}

TEST(Resampler, RefusesWhatCannotWork) {
  for (const auto& [from, to, channels] : {std::tuple(0, 24000, 1),
                                           {24000, -1, 1},
                                           {24000, 1000000, 1},
                                           {24000, 48000, 0},
                                           {24000, 48000, 65}}) {
    const auto resampler = Resampler::create(from, to, channels);
    ASSERT_FALSE(resampler);
    EXPECT_EQ(resampler.error().code, ErrorCode::usage);
  }
  auto resampler = Resampler::create(24000, 48000, 2);
  std::vector<float> out;
  EXPECT_THROW((void)resampler->push(std::vector<float>(3), out), UsageError);
  EXPECT_GT(Resampler::output_frames(INT64_MAX - 1, 8000, 48000), INT64_MAX / 2);
}

}  // namespace
}  // namespace tessera::test
