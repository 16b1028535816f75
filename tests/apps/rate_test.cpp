// --kbps keeps its promise for the file that is written, and takes as many codebooks as it can.
#include "apps/rate.h"

#include "support.h"

namespace tessera::test {
namespace {

using RateTest = CommandTest;

TEST_F(RateTest, TheFileStaysBelowAndOneMoreCodebookWouldNot) {
  write_wav("in.wav", voice(2, 16000, 2));
  for (const double kbps : {2.0, 6.0, 11.5}) {
    SCOPED_TRACE(kbps);
    const auto encoded =
        ok({"encode", "in.wav", "x.tsr", "--coder", "pack", "--json", "--kbps", std::to_string(kbps)}).json();
    EXPECT_LE(encoded["kbps"].get<double>(), kbps);
    const int codebooks = encoded["codebooks"];
    EXPECT_GE(codebooks, 1);
    EXPECT_LT(codebooks, 16);
    const auto more =
        ok({"encode", "in.wav", "y.tsr", "--coder", "pack", "--json", "-n", std::to_string(codebooks + 1)})
            .json();
    EXPECT_GT(more["kbps"].get<double>(), kbps);
  }
}

TEST_F(RateTest, PlentyOfRateTakesAllCodebooks) {
  write_wav("in.wav", voice(0.3));
  EXPECT_EQ(ok({"encode", "in.wav", "x.tsr", "--json", "--kbps", "1000"}).json()["codebooks"], 16);
}

TEST_F(RateTest, TooLittleNamesTheLowest) {
  write_wav("in.wav", voice(2));
  const Outcome run = tessera({"encode", "in.wav", "x.tsr", "--kbps", "0.3"});
  EXPECT_EQ(run.exit_code, 2);
  const std::string start = "tessera: encode: --kbps 0.300: the lowest possible rate is ";
  ASSERT_EQ(run.err.compare(0, start.size(), start), 0) << run.err;
  const double lowest = std::stod(run.err.substr(start.size())) + 0.001;  // printed with three decimals
  EXPECT_EQ(ok({"encode", "in.wav", "x.tsr", "--json", "--kbps", std::to_string(lowest)}).json()["codebooks"],
            1);
}

TEST_F(RateTest, ModelsListsARateForEveryNumberOfCodebooks) {
  const auto models = ok({"models", "--json"}).json();
  const auto& rates = models["builtin"]["rates"];
  ASSERT_EQ(rates.size(), 16u);
  write_wav("minute.wav", voice(60));
  const auto encoded = ok({"encode", "minute.wav", "x.tsr", "--coder", "pack", "--json", "-n", "3"}).json();
  EXPECT_DOUBLE_EQ(encoded["kbps"], rates[2]["kbps"]);
  EXPECT_GE(models["families"].size(), 3u);
}

}  // namespace
}  // namespace tessera::test
