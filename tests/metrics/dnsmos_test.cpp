#include "metrics/dnsmos.h"

#include <limits>

#include "core/safetensors.h"
#include "tests/metrics/support.h"

namespace tessera::metrics {
namespace {

constexpr const char* kFile = "metrics/dnsmos/dnsmos_p835.safetensors";

struct Rated {
  const char* recording;
  double signal, background, overall;  // outputs of the published network for the first window
};

TEST(Dnsmos, AgreesWithThePublishedNetwork) {
  TESSERA_NEED_SHARED(kFile);
  constexpr Rated kRated[] = {
      {"data/speech16/test_libri_tc/103-1240-0000.flac", 4.183878, 4.327327, 3.874589},
      {"data/speech16/test_libri_other/1688-142285-0003.flac", 3.603412, 3.820801, 3.264317},
      {"data/speech16/test_so762/003060002.flac", 3.923225, 3.985697, 3.528780},
  };
  const Dnsmos dnsmos = Dnsmos::load(test::shared(kFile)).value();
  ThreadPool pool(2);
  for (const Rated& rated : kRated) {
    std::vector<float> sound = test::read_recording(rated.recording).samples;
    sound.resize(std::min(sound.size(), Dnsmos::kWindow));
    const DnsmosScore score = dnsmos.score(sound, 16000, pool).value();
    EXPECT_EQ(score.windows, 1);
    EXPECT_NEAR(score.raw.signal, rated.signal, 5e-5) << rated.recording;
    EXPECT_NEAR(score.raw.background, rated.background, 5e-5) << rated.recording;
    EXPECT_NEAR(score.raw.overall, rated.overall, 5e-5) << rated.recording;
    const double s = score.raw.signal;
    EXPECT_NEAR(score.ratings.signal, -0.08397278 * s * s + 1.22083953 * s + 0.0052439, 1e-12);
  }
}

TEST(Dnsmos, WindowsLieASecondApart) {
  TESSERA_NEED_SHARED(kFile);
  const Dnsmos dnsmos = Dnsmos::load(test::shared(kFile)).value();
  ThreadPool pool(2);
  const std::vector<float> sound = test::bursts(Dnsmos::kWindow + Dnsmos::kHop, 16000);
  const auto rate = [&](std::size_t begin, std::size_t count) {
    return dnsmos.score(std::span(sound).subspan(begin, count), 16000, pool).value();
  };
  const DnsmosScore both = rate(0, sound.size()), first = rate(0, Dnsmos::kWindow + 15999),
                    second = rate(Dnsmos::kHop, Dnsmos::kWindow);
  EXPECT_EQ(both.windows, 2);
  EXPECT_EQ(first.windows, 1);
  EXPECT_NEAR(both.raw.overall, (first.raw.overall + second.raw.overall) / 2, 1e-12);
}

TEST(Dnsmos, RefusesBadInput) {
  EXPECT_EQ(Dnsmos::load("/no/such/file").error().code, ErrorCode::io);
  TESSERA_NEED_SHARED(kFile);
  const Dnsmos dnsmos = Dnsmos::load(test::shared(kFile)).value();
  ThreadPool pool;
  EXPECT_EQ(dnsmos.score({}, 16000, pool).error().code, ErrorCode::format);
  const std::vector<float> bad(10, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(dnsmos.score(bad, 16000, pool).error().code, ErrorCode::format);
  EXPECT_EQ(dnsmos.score(std::vector<float>(10), 48000, pool).error().code, ErrorCode::usage);
  EXPECT_EQ(Dnsmos::load(test::shared("models/bootstrap_speech/model.safetensors")).error().code,
            std::filesystem::exists(test::shared("models/bootstrap_speech/model.safetensors"))
                ? ErrorCode::mismatch
                : ErrorCode::io);
}

}  // namespace
}  // namespace tessera::metrics
