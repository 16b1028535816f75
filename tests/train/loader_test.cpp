// Batches made in the background are the batches that the step names: any threads, any timing, any resume.
#include "train/data/loader.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "core/error.h"
#include "data_support.h"

namespace tessera::train {
namespace {

using test::options_for, test::Scratch, test::write_markers;

struct Made {
  Scratch scratch;
  std::optional<Dataset> set;
  std::optional<Crops> crops;

  explicit Made(bool mapped = false) {
    write_markers(scratch / "set", {5000, 300, 2000});
    auto options = options_for(scratch / "set", scratch / "cache");
    if (mapped) options.memory_limit_bytes = 0;
    set = Dataset::open(options).value();
    CropOptions crop;
    crop.batch = 4;
    crop.length = 200;
    crop.seed = 11;
    crop.gain_min_db = -6;
    crop.noise_dbfs = -60;
    crops.emplace(*set, crop);
  }
};

void expect_same(const Batch& got, const Batch& expected) {
  ASSERT_EQ(got.step, expected.step);
  ASSERT_EQ(got.audio.shape(), expected.audio.shape());
  EXPECT_TRUE(std::equal(got.audio.f32(), got.audio.f32() + got.audio.size(), expected.audio.f32()));
  ASSERT_EQ(got.crops.size(), expected.crops.size());
  for (std::size_t i = 0; i < got.crops.size(); ++i) {
    EXPECT_EQ(got.crops[i].recording, expected.crops[i].recording);
    EXPECT_EQ(got.crops[i].begin, expected.crops[i].begin);
    EXPECT_EQ(got.crops[i].gain, expected.crops[i].gain);
  }
}

TEST(BatchLoader, GivesTheBatchesOfTheStepsForAnyThreadsAndTiming) {
  const Made made;
  for (const int threads : {1, 2, 5}) {
    for (const int ahead : {1, 2, 7}) {
      LoaderOptions options;
      options.threads = threads;
      options.ahead = ahead;
      BatchLoader loader(*made.crops, options);
      for (std::int64_t step = 0; step < 20; ++step) {
        if (step % 9 == 4) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // let the queue fill
        EXPECT_EQ(loader.step(), step);
        expect_same(loader.next(), made.crops->batch(step));
      }
    }
  }
}

TEST(BatchLoader, GoesOnFromAnyStep) {
  const Made made;
  LoaderOptions options;
  options.step = 1000;
  options.threads = 2;
  options.ahead = 3;
  BatchLoader loader(*made.crops, options);
  expect_same(loader.next(), made.crops->batch(1000));
  for (const std::int64_t step : {5, 5, 6, 123456789, 0}) {
    loader.set_step(step);
    EXPECT_EQ(loader.step(), step);
    expect_same(loader.next(), made.crops->batch(step));
    expect_same(loader.next(), made.crops->batch(step + 1));
  }
}

TEST(BatchLoader, TakesOneMachinesRows) {
  const Made made;
  LoaderOptions options;
  options.first_row = 1;
  options.row_count = 2;
  BatchLoader part(*made.crops, options);
  expect_same(part.next(), made.crops->rows(0, 1, 2));
  options.row_count = 0;
  BatchLoader rest(*made.crops, options);
  expect_same(rest.next(), made.crops->rows(0, 1, 3));
}

TEST(BatchLoader, PassesErrorsOnWhereTheyBelongAndRecovers) {
  const Made made(true);
  LoaderOptions options;
  options.ahead = 2;
  BatchLoader loader(*made.crops, options);
  expect_same(loader.next(), made.crops->batch(0));
  const std::string cache = made.scratch / "cache", away = made.scratch / "away";
  std::filesystem::rename(cache, away);
  loader.set_step(30);
  for (int again = 0; again < 2; ++again) {
    try {
      static_cast<void>(loader.next());
      FAIL() << "no error";
    } catch (const ResultError& trouble) {
      EXPECT_EQ(trouble.error().code, ErrorCode::io);
      const std::string text = trouble.what();
      EXPECT_TRUE(text.starts_with("step 30: set/")) << text;
      EXPECT_NE(text.find(cache), std::string::npos) << text;
    }
    EXPECT_EQ(loader.step(), 30);
  }
  std::filesystem::rename(away, cache);
  loader.set_step(30);
  expect_same(loader.next(), made.crops->batch(30));
}

TEST(BatchLoader, ReportsACacheFileThatGotShorter) {
  const Made made(true);
  for (const auto& recording : made.set->recordings()) std::filesystem::resize_file(recording.cache, 100);
  BatchLoader loader(*made.crops, {});
  try {
    static_cast<void>(loader.next());
    FAIL() << "no error";
  } catch (const ResultError& trouble) {
    EXPECT_EQ(trouble.error().code, ErrorCode::damaged);
    EXPECT_NE(std::string(trouble.what()).find("shorter than it was"), std::string::npos) << trouble.what();
  }
}

TEST(BatchLoader, EndsAtAnyMoment) {
  const Made made;
  for (int taken = 0; taken < 12; ++taken) {
    LoaderOptions options;
    options.threads = 3;
    options.ahead = 4;
    BatchLoader loader(*made.crops, options);
    for (int i = 0; i < taken % 4; ++i) static_cast<void>(loader.next());
    if (taken % 3 == 0) loader.set_step(taken);
  }
}

TEST(BatchLoader, OptionsThatCannotWorkThrow) {
  const Made made;
  const auto refused = [&](auto change) {
    LoaderOptions options;
    change(options);
    EXPECT_THROW(BatchLoader(*made.crops, options), UsageError);
  };
  refused([](LoaderOptions& o) { o.ahead = 0; });
  refused([](LoaderOptions& o) { o.threads = 0; });
  refused([](LoaderOptions& o) { o.step = -1; });
  refused([](LoaderOptions& o) { o.first_row = 4; });
  refused([](LoaderOptions& o) { o.first_row = -1; });
  refused([](LoaderOptions& o) { o.row_count = 5; });
  BatchLoader loader(*made.crops, {});
  EXPECT_THROW(loader.set_step(-1), UsageError);
}

}  // namespace
}  // namespace tessera::train
