// The dataset: what the cache holds, when it is made again, what the report says, what is refused.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "core/error.h"
#include "data_support.h"
#include "train/data/dataset.h"

namespace tessera::train {
namespace {

using test::error_of, test::kRate, test::marker, test::markers, test::options_for, test::Scratch;
using test::whole, test::write_audio, test::write_markers, test::write_text;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Dataset, StoresSixteenBitsWhereNothingIsLost) {
  const Scratch scratch;
  write_audio(scratch / "set/a16.wav", kRate, 1, markers(0, 70000));
  const auto fine = [] {
    auto samples = markers(1, 70000);
    samples.back() += 0x1p-20f;  // the last of all needs more than 16 bits
    return samples;
  }();
  write_audio(scratch / "set/b24.flac", kRate, 1, fine, SampleFormat::pcm24);
  auto loud = markers(2, 100);
  loud[50] = 1.5f;
  write_audio(scratch / "set/c32.wav", kRate, 1, loud, SampleFormat::float32);
  write_audio(scratch / "set/d32.wav", kRate, 1, markers(3, 100), SampleFormat::float32);
  const Dataset set = Dataset::open(options_for(scratch / "set", scratch / "cache")).value();
  ASSERT_EQ(set.recordings().size(), 4u);
  EXPECT_TRUE(set.recordings()[0].pcm16);
  EXPECT_FALSE(set.recordings()[1].pcm16);
  EXPECT_FALSE(set.recordings()[2].pcm16);
  EXPECT_TRUE(set.recordings()[3].pcm16);
  EXPECT_EQ(whole(set, 0), markers(0, 70000));
  EXPECT_EQ(whole(set, 1)[69999], marker(1, 69999) + 0x1p-20f);
  EXPECT_EQ(whole(set, 1)[69998], marker(1, 69998));
  EXPECT_EQ(whole(set, 2), loud);
  EXPECT_EQ(whole(set, 3), markers(3, 100));
  EXPECT_EQ(set.samples(), 140200);
  EXPECT_EQ(std::filesystem::file_size(set.recordings()[0].cache), 64u + 140000u);
}

TEST(Dataset, SaysWhatWasResampledAndMixedAlsoFromTheCache) {
  const Scratch scratch;
  std::vector<float> stereo;
  for (int t = 0; t < 1000; ++t) {
    stereo.push_back(marker(0, t));
    stereo.push_back(0.25f);
  }
  write_audio(scratch / "set/a.wav", kRate, 2, stereo);
  write_audio(scratch / "set/b.wav", 16000, 1, markers(1, 1601));
  write_audio(scratch / "set/c.wav", 16000, 2, stereo);
  write_audio(scratch / "set/d.wav", kRate, 1, markers(3, 10));
  const auto options = options_for(scratch / "set", scratch / "new/cache");
  for (const bool again : {false, true}) {
    const Dataset set = Dataset::open(options).value();
    const DatasetReport& report = set.report();
    EXPECT_EQ(report.decoded, again ? 0 : 4);
    EXPECT_EQ(report.cached, again ? 4 : 0);
    EXPECT_EQ(report.resampled, 2);
    EXPECT_EQ(report.mixed, 2);
    EXPECT_EQ(report.notes.at("resampled 16000 Hz -> 8000 Hz"), 2);
    EXPECT_EQ(report.notes.at("mixed 2 channels to 1 (plain mean)"), 2);
    EXPECT_EQ(set.recordings()[1].samples, 801);
    EXPECT_EQ(set.recordings()[1].source_rate_hz, 16000);
    EXPECT_EQ(set.recordings()[2].source_channels, 2);
    EXPECT_EQ(set.recordings()[2].samples, 500);
    const auto mixed = whole(set, 0);
    ASSERT_EQ(mixed.size(), 1000u);
    for (std::size_t t = 0; t < 1000; ++t)
      ASSERT_EQ(mixed[t], (marker(0, static_cast<std::int64_t>(t)) + 0.25f) / 2) << t;
    std::string lines;
    for (const auto& line : report.lines()) lines += line + "\n";
    EXPECT_TRUE(contains(lines, "4 recordings of 0.00 to 0.13 s, 0.00 h at 8000 Hz, in memory")) << lines;
    EXPECT_TRUE(contains(lines, "2 recordings resampled\n2 recordings mixed to mono\n")) << lines;
  }
}

TEST(Dataset, RebuildsADamagedCacheFile) {
  const Scratch scratch;
  write_markers(scratch / "set", {5000, 300});
  auto options = options_for(scratch / "set", scratch / "cache");
  const std::string cache = Dataset::open(options).value().recordings()[0].cache;
  const auto flip = [&](std::streamoff at) {
    std::fstream file(cache, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char old = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(old ^ 0x10));
  };
  const std::vector<std::function<void()>> accidents = {
      [&] { flip(0); },   // magic
      [&] { flip(17); },  // count of samples
      [&] { flip(60); },  // hash of the header
      [&] { flip(64 + 4321); },
      [&] { std::filesystem::resize_file(cache, 64 + 9999); },
      [&] { std::filesystem::resize_file(cache, 64 + 10001); },
      [&] { std::filesystem::resize_file(cache, 20); },
      [&] { std::filesystem::resize_file(cache, 0); },
      [&] { write_text(cache, std::string(5000, 'x')); },
  };
  for (std::size_t i = 0; i < accidents.size(); ++i) {
    accidents[i]();
    const Dataset set = Dataset::open(options).value();
    EXPECT_EQ(set.report().rebuilt, 1) << i;
    EXPECT_EQ(set.report().decoded, 1) << i;
    EXPECT_EQ(set.report().cached, 1) << i;
    EXPECT_EQ(whole(set, 0), markers(0, 5000)) << i;
  }
  EXPECT_EQ(Dataset::open(options).value().report().cached, 2);
  // Without the look at the whole file its length and header still count.
  options.verify_cache = false;
  flip(64 + 4321);
  EXPECT_EQ(Dataset::open(options).value().report().rebuilt, 0);
  std::filesystem::resize_file(cache, 64 + 9999);
  EXPECT_EQ(Dataset::open(options).value().report().rebuilt, 1);
}

TEST(Dataset, DecodesAnewWhatChanged) {
  const Scratch scratch;
  write_markers(scratch / "set", {500, 300});
  auto options = options_for(scratch / "set", scratch / "cache");
  ASSERT_EQ(Dataset::open(options).value().report().decoded, 2);
  write_audio(scratch / "set/b.wav", kRate, 1, markers(7, 300));  // same size, another time
  const Dataset set = Dataset::open(options).value();
  EXPECT_EQ(set.report().decoded, 1);
  EXPECT_EQ(set.report().rebuilt, 0);
  EXPECT_EQ(whole(set, 1), markers(7, 300));
  options.sample_rate_hz = 16000;  // another model's rate lies beside it in the same cache
  EXPECT_EQ(Dataset::open(options).value().report().decoded, 2);
  options.sample_rate_hz = kRate;
  EXPECT_EQ(Dataset::open(options).value().report().cached, 2);
}

TEST(Dataset, RefusesWhatCannotBeReadAndNamesIt) {
  const Scratch scratch;
  write_markers(scratch / "set", {500, 300, 200});
  write_text(scratch / "set/k.wav", "this is no sound");
  write_text(scratch / "set/l.wav", "");
  auto nan = markers(0, 40);
  nan[3] = std::numeric_limits<float>::quiet_NaN();
  write_audio(scratch / "set/m.wav", kRate, 1, nan, SampleFormat::float32);
  nan[3] = 1e20f;
  write_audio(scratch / "set/n.wav", kRate, 1, nan, SampleFormat::float32);
  write_audio(scratch / "set/o.wav", kRate, 1, {});
  write_audio(scratch / "set/p.wav", kRate, 1, markers(0, 4000));
  std::filesystem::resize_file(scratch / "set/p.wav", 3000);
  ASSERT_EQ(mkfifo((scratch / "set/q.wav").c_str(), 0600), 0);
  std::filesystem::create_symlink("nowhere", scratch / "set/r.wav");

  auto options = options_for(scratch / "set", scratch / "cache");
  const std::string error = error_of(options);
  EXPECT_TRUE(contains(error, "8 of 11 recordings cannot be read (at most 1.00 % may fail): set/k.wav: "))
      << error;
  EXPECT_TRUE(contains(error, "and 5 more")) << error;

  options.refused_limit = 0.75;
  const Dataset set = Dataset::open(options).value();
  EXPECT_EQ(set.recordings().size(), 3u);
  const auto& refused = set.report().refused;
  ASSERT_EQ(refused.size(), 8u);
  const std::vector<std::string> said = {"set/k.wav: ",
                                         "empty",
                                         "within 16 times full scale, got nan at sample 3",
                                         "got 100000002004087734272.000000 at sample 3",
                                         "it holds no samples",
                                         "its header promises 8000 bytes of sound",
                                         "expected a regular file",
                                         "No such file"};
  for (std::size_t i = 0; i < said.size(); ++i) EXPECT_TRUE(contains(refused[i], said[i])) << refused[i];
  EXPECT_TRUE(contains(set.report().lines().back(), "refused set/r.wav")) << set.report().lines().back();
  // Nothing half-made stays in the cache.
  for (const auto& entry : std::filesystem::directory_iterator(scratch / "cache"))
    EXPECT_EQ(entry.path().extension(), ".pcm") << entry.path();

  options.sources.exclude = {"a.wav", "b.wav", "c.wav"};
  options.refused_limit = 1;
  EXPECT_TRUE(contains(error_of(options), "8 of 8 recordings cannot be read"));
}

TEST(Dataset, OneInAHundredMayFail) {
  const Scratch scratch;
  write_audio(scratch / "set/0.wav", kRate, 1, {0.5f});
  for (int i = 1; i < 99; ++i)
    std::filesystem::copy_file(scratch / "set/0.wav", scratch / "set/" + std::to_string(i) + ".wav");
  write_text(scratch / "set/bad.wav", "x");
  EXPECT_EQ(error_of(options_for(scratch / "set", scratch / "cache")), "");
  write_text(scratch / "set/bad2.wav", "x");
  EXPECT_TRUE(contains(error_of(options_for(scratch / "set", scratch / "cache")), "2 of 101 recordings"));
}

TEST(Dataset, IsTheSameInMemoryMappedAndForAnyThreads) {
  const Scratch scratch;
  write_markers(scratch / "set", {500, 300, 4000, 1, 77});
  auto options = options_for(scratch / "set", scratch / "cache");
  options.threads = 1;
  const Dataset memory = Dataset::open(options).value();
  options.threads = 3;
  options.cache_folder = scratch / "cache3";
  options.memory_limit_bytes = memory.samples() * 2 - 1;
  const Dataset mapped = Dataset::open(options).value();
  EXPECT_TRUE(memory.in_memory());
  EXPECT_FALSE(mapped.in_memory());
  EXPECT_EQ(memory.fingerprint(), mapped.fingerprint());
  for (std::int64_t r = 0; r < 5; ++r) {
    EXPECT_EQ(whole(memory, r), whole(mapped, r));
    EXPECT_EQ(memory.recordings()[static_cast<std::size_t>(r)].name,
              mapped.recordings()[static_cast<std::size_t>(r)].name);
  }
  for (const Dataset* set : {&memory, &mapped}) {
    std::vector<float> some(7);
    set->read(2, 3993, some);
    for (int i = 0; i < 7; ++i) EXPECT_EQ(some[static_cast<std::size_t>(i)], marker(2, 3993 + i));
    EXPECT_THROW(set->read(2, 3994, some), UsageError);
    EXPECT_THROW(set->read(2, -1, some), UsageError);
    EXPECT_THROW(set->read(5, 0, some), UsageError);
    EXPECT_THROW(set->read(-1, 0, some), UsageError);
  }
}

TEST(Dataset, FingerprintFollowsTheDataNotItsPlace) {
  const Scratch scratch;
  write_markers(scratch / "here/set", {500, 300});
  write_markers(scratch / "there", {500, 300});
  const auto fingerprint = [&](const std::string& folder) {
    return Dataset::open(options_for(scratch / folder, scratch / "cache")).value().fingerprint();
  };
  const auto first = fingerprint("here/set");
  EXPECT_EQ(fingerprint("there"), first);
  write_audio(scratch / "there/b.wav", kRate, 1, markers(1, 301));
  EXPECT_NE(fingerprint("there"), first);
  write_audio(scratch / "there/b.wav", kRate, 1, markers(1, 300));
  EXPECT_EQ(fingerprint("there"), first);
  std::filesystem::rename(scratch / "there/b.wav", scratch / "there/c.wav");
  EXPECT_NE(fingerprint("there"), first);
  write_audio(scratch / "here/set/z.wav", kRate, 1, {0.0f});
  EXPECT_NE(fingerprint("here/set"), first);
}

TEST(Dataset, TellsProgressOnceForEachRecording) {
  const Scratch scratch;
  write_markers(scratch / "set", {50, 30, 40, 1});
  auto options = options_for(scratch / "set", scratch / "cache");
  std::vector<std::int64_t> done;
  std::vector<std::string> names;
  options.progress = [&](std::int64_t count, std::int64_t total, const std::string& name) {
    EXPECT_EQ(total, 4);
    done.push_back(count);
    names.push_back(name);
  };
  ASSERT_EQ(error_of(options), "");
  EXPECT_EQ(done, (std::vector<std::int64_t>{1, 2, 3, 4}));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"set/a.wav", "set/b.wav", "set/c.wav", "set/d.wav"}));
  options.progress = [](std::int64_t, std::int64_t, const std::string&) { throw std::runtime_error("stop"); };
  EXPECT_THROW(static_cast<void>(Dataset::open(options)), std::runtime_error);
}

TEST(Dataset, ACacheThatCannotBeWrittenIsNoFaultOfTheRecordings) {
  const Scratch scratch;
  write_markers(scratch / "set", {50});
  write_text(scratch / "file", "x");
  auto options = options_for(scratch / "set", scratch / "file");
  options.refused_limit = 1;
  EXPECT_TRUE(contains(error_of(options), "cannot make the cache folder"));
  options = options_for(scratch / "set", scratch / "cache");
  const std::string cache = Dataset::open(options).value().recordings()[0].cache;
  std::filesystem::remove(cache);
  std::filesystem::create_directory(cache);
  const auto opened = Dataset::open(options);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::io);
  EXPECT_TRUE(contains(opened.error().message, cache)) << opened.error().message;
}

TEST(Dataset, OptionsThatCannotWorkThrow) {
  const Scratch scratch;
  write_markers(scratch / "set", {50});
  const auto with = [&](auto change) {
    auto options = options_for(scratch / "set", scratch / "cache");
    change(options);
    return options;
  };
  const std::vector<DatasetOptions> cases = {
      with([](DatasetOptions& o) { o.sample_rate_hz = 0; }),
      with([](DatasetOptions& o) { o.cache_folder = ""; }),
      with([](DatasetOptions& o) { o.refused_limit = 1.5; }),
      with([](DatasetOptions& o) { o.refused_limit = std::nan(""); }),
      with([](DatasetOptions& o) { o.threads = -1; }),
  };
  for (const auto& options : cases) EXPECT_THROW(static_cast<void>(Dataset::open(options)), UsageError);
}

}  // namespace
}  // namespace tessera::train
