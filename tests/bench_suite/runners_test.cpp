// Codecs by words: what each word makes, and what is said about words that make none.
#include "apps/bench/runners.h"

#include "apps/bench/codec2_runner.h"
#include "apps/bench/opus_runner.h"
#include "apps/bench/speex_runner.h"
#include "tests/bench_suite/runner_support.h"

namespace tessera::bench {
namespace {

std::vector<std::string> point_names(const std::string& spec) {
  std::vector<std::string> names;
  const auto made = make_runner(spec);
  if (!made) ADD_FAILURE() << made.error().message;
  for (const OperatingPoint& point : (*made)->points()) names.push_back(point.name);
  return names;
}

using Names = std::vector<std::string>;

std::string error_of(const std::string& spec) {
  const auto made = make_runner(spec);
  if (made) return "";
  EXPECT_EQ(made.error().message.find('\n'), std::string::npos);
  return made.error().message;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Runners, MakesWhatTheWordsSay) {
  EXPECT_EQ(point_names("identity"), Names{"16-bit PCM"});
  EXPECT_EQ(point_names("tessera:1,4"), (Names{"1 codebook", "4 codebooks"}));
  EXPECT_EQ(point_names("tessera::2:bf16"), Names{"2 codebooks"});
  EXPECT_EQ(make_runner("tessera").value()->name(), "tessera_speech");
  EXPECT_TRUE(has(make_runner("tessera:int8").value()->version(), "int8"));
  EXPECT_EQ(point_names("external:x:cp {input} {output}:cp {input} {output}"), Names{"default"});
  EXPECT_EQ(point_names("external:x:cp {input} {output} # {point}:cp {input} {output}:1,2"),
            (Names{"1", "2"}));
}

TEST(Runners, MakesTheLibrariesThatAreThere) {
  const auto check = [](const std::string& spec, const std::string& absence, const Names& names) {
    if (absence.empty()) {
      EXPECT_EQ(point_names(spec), names);
    } else {
      EXPECT_TRUE(has(error_of(spec), absence)) << error_of(spec);
    }
  };
  check("opus", opus_absence(), {"6 kbps", "9 kbps", "12 kbps", "16 kbps", "24 kbps"});
  check("opus:audio:8.5,12", opus_absence(), {"8.5 kbps", "12 kbps"});
  check("codec2:700C,1300", codec2_absence(), {"mode 700C", "mode 1300"});
  check("speex:3", speex_absence(), {"quality 3"});
}

TEST(Runners, AColonMayBePartOfAField) {
  const auto made = make_runner("external:x:cp {input} {output} # a\\:b:cp {input} {output}").value();
  EXPECT_TRUE(has(made->recipe(made->points()[0]), "# a:b;")) << made->recipe(made->points()[0]);
}

TEST(Runners, NamesAreGivenAndDistinct) {
  EXPECT_EQ(make_runner("mine=tessera:1").value()->name(), "mine");
  EXPECT_TRUE(has(error_of("a b=tessera"), "a b"));
  const std::vector<std::string> twice{"identity", "identity"}, renamed{"identity", "again=identity"};
  const auto made = make_runners(twice);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "two codecs are called identity: name one of them, as in other=identity");
  EXPECT_EQ(make_runners(renamed).value().size(), 2u);
}

TEST(Runners, UnknownWordsListWhatThereIs) {
  const std::string error = error_of("mp3");
  for (const CodecChoice& choice : codec_choices()) EXPECT_TRUE(has(error, choice.name)) << error;
  EXPECT_TRUE(has(error, "got 'mp3'")) << error;
  EXPECT_FALSE(error_of("").empty());
}

TEST(Runners, ExplainsWrongFields) {
  EXPECT_TRUE(has(error_of("identity:5"), "got '5'"));
  EXPECT_TRUE(has(error_of("tessera:builtin.safetensors"), "builtin.safetensors"));
  EXPECT_TRUE(has(error_of("tessera:1:2:nonsense"), "got 'nonsense'"));
  EXPECT_TRUE(has(error_of("tessera:1,1"), "'1 codebook' is there twice"));
  EXPECT_TRUE(has(error_of("tessera:0"), "got 0"));
  EXPECT_TRUE(has(error_of("ffmpeg"), "expected one of the encoders"));
  EXPECT_TRUE(has(error_of("external:x:cp"), "got 2 fields"));
  EXPECT_TRUE(!opus_absence().empty() || has(error_of("opus:fast"), "got 'fast'"));
  EXPECT_TRUE(!opus_absence().empty() || has(error_of("opus:2"), "got 2"));
  EXPECT_TRUE(!speex_absence().empty() || has(error_of("speex:a"), "got 'a'"));
  EXPECT_TRUE(!codec2_absence().empty() || has(error_of("codec2:a"), "got a"));
}

}  // namespace
}  // namespace tessera::bench
