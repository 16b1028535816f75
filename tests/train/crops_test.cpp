// Random crops: a pure function of the step, epochs that visit everything, the options of a crop one by one.
#include "train/data/crops.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/hash.h"
#include "data_support.h"
#include "train/data/shuffle.h"

namespace tessera::train {
namespace {

using test::kRate, test::marker, test::options_for, test::Scratch, test::square;
using test::write_audio, test::write_markers;

Dataset marked(const Scratch& scratch, const std::vector<std::int64_t>& lengths) {
  write_markers(scratch / "set", lengths);
  return Dataset::open(options_for(scratch / "set", scratch / "cache")).value();
}

CropOptions of(int batch, std::int64_t length, std::uint64_t seed = 5) {
  CropOptions options;
  options.batch = batch;
  options.length = length;
  options.seed = seed;
  return options;
}

const float* row_of(const Batch& batch, std::size_t row) {
  return batch.audio.f32() + static_cast<std::int64_t>(row) * batch.audio.dim(1);
}

/// What a part adds to sample i of its row.
float expected_at(const CropPart& part, std::int64_t i) {
  const std::int64_t t = i - part.offset;
  return t < 0 || t >= part.length ? 0.0f : part.gain * marker(part.recording, part.begin + t);
}

std::uint64_t hash_of(const Batch& batch) {
  return content_hash(
      std::as_bytes(std::span(batch.audio.f32(), static_cast<std::size_t>(batch.audio.size()))));
}

double rms(const float* x, std::int64_t count) {
  double power = 0;
  for (std::int64_t i = 0; i < count; ++i) power += static_cast<double>(x[i]) * x[i];
  return std::sqrt(power / static_cast<double>(count));
}

TEST(Shuffle, IsAPermutationThatEveryEpochAndSeedChanges) {
  for (const std::int64_t count : {1, 2, 3, 4, 5, 16, 17, 64, 65, 1000, 4097}) {
    std::set<std::vector<std::int64_t>> orders;
    for (const auto& [seed, epoch] : {std::pair(1, 0), std::pair(1, 1), std::pair(2, 0)}) {
      const Shuffle shuffle(static_cast<std::uint64_t>(seed), epoch, count);
      std::vector<std::int64_t> order, sorted;
      for (std::int64_t i = 0; i < count; ++i) order.push_back(shuffle(i));
      sorted = order;
      std::sort(sorted.begin(), sorted.end());
      for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(sorted[static_cast<std::size_t>(i)], i) << count;
      if (count >= 64) {
        EXPECT_NE(order, sorted);
      }
      orders.insert(order);
    }
    if (count >= 64) {
      EXPECT_EQ(orders.size(), 3u);
    }
  }
}

TEST(Crops, HoldTheSamplesTheyName) {
  const Scratch scratch;
  const Dataset set = marked(scratch, {5000, 300, 12000});
  auto options = of(4, 320);
  options.align = 40;
  options.gain_min_db = -9;
  options.gain_max_db = 3;
  options.flip_polarity = true;
  options.mix_probability = 0.5;
  const Crops crops(set, options);
  int mixed = 0;
  for (std::int64_t step = 0; step < 40; ++step) {
    const Batch batch = crops.batch(step);
    ASSERT_EQ(batch.step, step);
    ASSERT_EQ(batch.audio.shape(), (Shape{4, 320}));
    ASSERT_EQ(batch.crops.size(), 4u);
    for (std::size_t row = 0; row < 4; ++row) {
      const CropInfo& crop = batch.crops[row];
      mixed += crop.mixed.has_value();
      EXPECT_EQ(crop.begin % 40, 0);
      EXPECT_EQ(crop.length, crop.recording == 1 ? 300 : 320);
      for (std::int64_t i = 0; i < 320; ++i) {
        const float other = crop.mixed ? expected_at(*crop.mixed, i) : 0.0f;
        ASSERT_NEAR(row_of(batch, row)[i], expected_at(crop, i) + other, 1e-6f) << crops.name(crop);
      }
    }
  }
  EXPECT_GT(mixed, 50);
  EXPECT_LT(mixed, 110);
}

TEST(Crops, AreAFunctionOfSeedStepAndData) {
  const Scratch scratch;
  const Dataset set = marked(scratch, {5000, 300, 12000});
  auto options = of(3, 256);
  options.gain_min_db = -6;
  options.noise_dbfs = -60;
  options.flip_polarity = true;
  options.mix_probability = 0.3;
  options.quiet_dbfs = -14;
  const Crops crops(set, options), same(set, options);
  options.seed = 6;
  const Crops other(set, options);
  const auto late = hash_of(crops.batch(1000000000));
  std::set<std::uint64_t> hashes;
  for (std::int64_t step = 0; step < 20; ++step) hashes.insert(hash_of(crops.batch(step)));
  EXPECT_EQ(hashes.size(), 20u);
  EXPECT_EQ(hash_of(same.batch(1000000000)), late);  // whatever was asked for before
  for (std::int64_t step = 20; step-- > 0;) {
    EXPECT_TRUE(hashes.contains(hash_of(same.batch(step))));
    EXPECT_FALSE(hashes.contains(hash_of(other.batch(step))));
  }
  // Resumed runs rely on it: a change of these numbers is a change of what a seed means.
  EXPECT_EQ(hex(hash_of(crops.batch(0))), "6cead1b26266bf7e");
  EXPECT_EQ(hex(late), "1318aa9fa852eeb4");
}

TEST(Crops, RowsAreTheSameWhoeverMakesThem) {
  const Scratch scratch;
  const Dataset set = marked(scratch, {5000, 300});
  auto options = of(5, 100);
  options.gain_max_db = 3;
  const Crops crops(set, options);
  const Batch all = crops.batch(7), some = crops.rows(7, 2, 2);
  ASSERT_EQ(some.audio.shape(), (Shape{2, 100}));
  EXPECT_TRUE(std::equal(row_of(all, 2), row_of(all, 4), row_of(some, 0)));
  EXPECT_EQ(some.crops[1].begin, all.crops[3].begin);
  EXPECT_THROW(static_cast<void>(crops.rows(7, 4, 2)), UsageError);
  EXPECT_THROW(static_cast<void>(crops.rows(7, -1, 2)), UsageError);
  EXPECT_THROW(static_cast<void>(crops.rows(7, 0, 0)), UsageError);
  EXPECT_THROW(static_cast<void>(crops.batch(-1)), UsageError);
  EXPECT_THROW(static_cast<void>(crops.batch(Crops::kMostSteps)), UsageError);
}

TEST(Crops, AnEpochVisitsEveryStretchOnceInAnOrderOfItsOwn) {
  const Scratch scratch;
  const Dataset set = marked(scratch, {8000});
  const Crops crops(set, of(4, 80));  // 100 stretches, 7921 places to begin
  EXPECT_EQ(crops.steps_per_epoch(), 25);
  std::set<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> begins;
    for (std::int64_t step = 0; step < 25; ++step)
      for (const auto& crop : crops.batch(epoch * 25 + step).crops) begins.push_back(crop.begin);
    orders.insert(begins);
    EXPECT_FALSE(std::is_sorted(begins.begin(), begins.end()));
    std::sort(begins.begin(), begins.end());
    for (std::int64_t i = 0; i < 100; ++i) {
      EXPECT_GE(begins[static_cast<std::size_t>(i)], i * 7921 / 100);
      EXPECT_LT(begins[static_cast<std::size_t>(i)] * 100, (i + 1) * 7921);
    }
  }
  EXPECT_EQ(orders.size(), 3u);
}

TEST(Crops, WeighRecordingsByDuration) {
  const Scratch scratch;
  const Dataset set = marked(scratch, {2000, 6000, 200, 11800});
  const Crops crops(set, of(10, 330));
  std::vector<int> drawn(4);
  for (std::int64_t step = 0; step < 600; ++step)
    for (const auto& crop : crops.batch(step).crops) ++drawn[static_cast<std::size_t>(crop.recording)];
  EXPECT_NEAR(drawn[0] / 6000.0, 0.10, 0.01);
  EXPECT_NEAR(drawn[1] / 6000.0, 0.30, 0.01);
  EXPECT_NEAR(drawn[2] / 6000.0, 0.01, 0.004);
  EXPECT_NEAR(drawn[3] / 6000.0, 0.59, 0.01);
}

TEST(Crops, ShortRecordingsLieSomewhereInZeros) {
  const Scratch scratch;
  const Dataset set = marked(scratch, {50, 1, 97});
  auto options = of(8, 100);
  options.align = 10;
  options.noise_dbfs = -80;
  const Crops crops(set, options);
  EXPECT_EQ(crops.steps_per_epoch(), 1.0 / 8);
  std::set<std::int64_t> offsets;
  for (std::int64_t step = 0; step < 30; ++step) {
    const Batch batch = crops.batch(step);
    for (std::size_t row = 0; row < 8; ++row) {
      const CropInfo& crop = batch.crops[row];
      EXPECT_EQ(crop.length, set.recordings()[static_cast<std::size_t>(crop.recording)].samples);
      EXPECT_EQ(crop.begin, 0);
      EXPECT_EQ(crop.offset % 10, 0);
      ASSERT_LE(crop.offset + crop.length, 100);
      if (crop.recording == 0) offsets.insert(crop.offset);
      for (std::int64_t i = 0; i < 100; ++i) {
        const bool inside = i >= crop.offset && i < crop.offset + crop.length;
        ASSERT_NEAR(row_of(batch, row)[i], expected_at(crop, i), inside ? 1e-3f : 0.0f);
      }
    }
  }
  EXPECT_EQ(offsets, (std::set<std::int64_t>{0, 10, 20, 30, 40, 50}));
}

TEST(Crops, LevelsCoverTheirRangeAndStayBelowFullScale) {
  const Scratch scratch;
  write_audio(scratch / "set/a.wav", kRate, 1, square(0.5f, 8000));
  const Dataset set = Dataset::open(options_for(scratch / "set", scratch / "cache")).value();
  auto options = of(20, 80);
  options.gain_min_db = -12;
  options.gain_max_db = 4;
  options.flip_polarity = true;
  const Crops crops(set, options);
  float least = 100, most = 0;
  double sum_db = 0;
  int flipped = 0;
  for (std::int64_t step = 0; step < 50; ++step) {
    const Batch batch = crops.batch(step);
    for (const auto& crop : batch.crops) {
      const float gain = std::abs(crop.gain);
      least = std::min(least, gain);
      most = std::max(most, gain);
      sum_db += 20 * std::log10(gain);
      flipped += crop.gain < 0;
    }
  }
  EXPECT_GE(least, std::pow(10, -12 / 20.0) * 0.9999);
  EXPECT_LT(least, std::pow(10, -11.8 / 20.0));
  EXPECT_LE(most, std::pow(10, 4 / 20.0) * 1.0001);
  EXPECT_GT(most, std::pow(10, 3.8 / 20.0));
  EXPECT_NEAR(sum_db / 1000, -4, 0.5);
  EXPECT_NEAR(flipped, 500, 60);

  options.gain_min_db = options.gain_max_db = 20;
  for (const auto& crop : Crops(set, options).batch(0).crops) EXPECT_EQ(std::abs(crop.gain), 2);
  write_audio(scratch / "set/a.wav", kRate, 1, square(1.5f, 8000), SampleFormat::float32);
  const Dataset loud = Dataset::open(options_for(scratch / "set", scratch / "cache")).value();
  for (const auto& crop : Crops(loud, options).batch(0).crops) EXPECT_EQ(std::abs(crop.gain), 1);
}

TEST(Crops, NoiseHasItsLevelAndNoPattern) {
  const Scratch scratch;
  write_audio(scratch / "set/a.wav", kRate, 1, std::vector<float>(20000, 0.0f));
  const Dataset set = Dataset::open(options_for(scratch / "set", scratch / "cache")).value();
  auto options = of(1, 16000);
  options.noise_dbfs = -50;
  const Crops crops(set, options);
  const Batch batch = crops.batch(0), next = crops.batch(1);
  EXPECT_NEAR(20 * std::log10(rms(batch.audio.f32(), 16000)), -50, 0.15);
  double mean = 0, one_apart = 0, across = 0;
  for (std::int64_t i = 0; i < 15999; ++i) {
    const float* x = batch.audio.f32();
    mean += x[i];
    one_apart += static_cast<double>(x[i]) * x[i + 1];
    across += static_cast<double>(x[i]) * next.audio.f32()[i];
  }
  const double power = 16000 * 1e-5;
  EXPECT_LT(std::abs(mean) / 16000, 0.03 * std::sqrt(1e-5));
  EXPECT_LT(std::abs(one_apart), 0.03 * power);
  EXPECT_LT(std::abs(across), 0.03 * power);
}

TEST(Crops, QuietPlacesAreDrawnAgainButForTheShareThatIsKept) {
  const Scratch scratch;
  auto samples = square(0.001f, 8000);  // -60 dBFS, then -20 dBFS
  const auto loud = square(0.1f, 8000);
  samples.insert(samples.end(), loud.begin(), loud.end());
  write_audio(scratch / "set/a.wav", kRate, 1, samples);
  const Dataset set = Dataset::open(options_for(scratch / "set", scratch / "cache")).value();
  auto options = of(20, 80);
  const auto quiet_share = [&] {
    const Crops crops(set, options);
    int quiet = 0;
    for (std::int64_t step = 0; step < 50; ++step) {
      const Batch batch = crops.batch(step);
      for (std::size_t row = 0; row < 20; ++row) quiet += rms(row_of(batch, row), 80) < 0.0031;
    }
    return quiet / 1000.0;
  };
  EXPECT_NEAR(quiet_share(), 0.5, 0.02);
  options.quiet_dbfs = -50;
  options.keep_quiet = 0;
  EXPECT_LT(quiet_share(), 0.01);
  options.keep_quiet = 0.4;
  EXPECT_NEAR(quiet_share(), 0.2, 0.04);
  options.keep_quiet = 0;
  options.redraws = 1;
  EXPECT_NEAR(quiet_share(), 0.25, 0.05);
  options.quiet_dbfs = -10;  // all of it is quiet: the draws come to an end
  EXPECT_NEAR(quiet_share(), 0.5, 0.05);
  options.gain_min_db = options.gain_max_db = -40;  // the level that counts is the recording's
  options.quiet_dbfs = -70;
  options.redraws = 50;
  const Crops before(set, of(20, 80)), after(set, options);
  for (std::size_t row = 0; row < 20; ++row)
    EXPECT_EQ(before.batch(3).crops[row].begin, after.batch(3).crops[row].begin);
}

TEST(Crops, MixedLevelsAreRelative) {
  const Scratch scratch;
  const Dataset set = marked(scratch, {5000, 3000});
  auto options = of(20, 80);
  options.mix_probability = 1;
  options.mix_min_db = -20;
  options.mix_max_db = -6;
  options.gain_min_db = -3;
  options.flip_polarity = true;
  const Crops crops(set, options);
  for (std::int64_t step = 0; step < 10; ++step) {
    for (const auto& crop : crops.batch(step).crops) {
      ASSERT_TRUE(crop.mixed);
      const double db = 20 * std::log10(crop.mixed->gain / crop.gain);
      EXPECT_GE(db, -20.001);
      EXPECT_LE(db, -5.999);
    }
  }
}

TEST(Crops, NameTheirPlace) {
  const Scratch scratch;
  const Dataset set = marked(scratch, {30000});
  const Crops crops(set, of(2, 80));
  CropInfo crop;
  crop.begin = 25600;
  EXPECT_EQ(crops.name(crop), "set/a.wav at 3.20 s");
  crop.mixed = CropPart{};
  EXPECT_EQ(crops.name(crop), "set/a.wav at 3.20 s + set/a.wav at 0.00 s");
  Batch batch;
  batch.step = 812;
  batch.crops = {crop, CropInfo{}};
  EXPECT_EQ(crops.name(batch), "step 812: set/a.wav at 3.20 s + set/a.wav at 0.00 s, set/a.wav at 0.00 s");
}

TEST(Crops, ARunGoesOnOnlyWithItsOwnData) {
  const Scratch scratch;
  const Dataset set = marked(scratch, {500, 300});
  const Crops crops(set, of(2, 80));
  DataPosition saved = crops.position(812);
  EXPECT_EQ(saved.step, 812);
  EXPECT_EQ(saved.seed, 5u);
  EXPECT_EQ(saved.fingerprint, set.fingerprint());
  EXPECT_TRUE(crops.check(saved));
  write_audio(scratch / "set/c.wav", kRate, 1, {0.5f});
  const Dataset more = Dataset::open(options_for(scratch / "set", scratch / "cache")).value();
  const auto refused = Crops(more, of(2, 80)).check(saved);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::mismatch);
  EXPECT_EQ(refused.error().message,
            "the data is not what the run was started with: expected 2 recordings, 0.10 s, fingerprint " +
                hex(set.fingerprint()) + "; got 3 recordings, 0.10 s, fingerprint " +
                hex(more.fingerprint()));
  const auto reseeded = Crops(set, of(2, 80, 6)).check(saved);
  ASSERT_FALSE(reseeded);
  EXPECT_EQ(reseeded.error().message, "the run was started with data seed 5, got seed 6");
  saved.step = -1;
  EXPECT_FALSE(crops.check(saved));
  saved.step = Crops::kMostSteps;
  EXPECT_FALSE(crops.check(saved));
}

TEST(Crops, OptionsThatCannotWorkThrow) {
  const Scratch scratch;
  const Dataset set = marked(scratch, {500});
  const auto refused = [&](auto change) {
    auto options = of(2, 80);
    change(options);
    EXPECT_THROW(Crops(set, options), UsageError);
  };
  refused([](CropOptions& o) { o.batch = 0; });
  refused([](CropOptions& o) { o.batch = 1 << 21; });
  refused([](CropOptions& o) { o.length = 0; });
  refused([](CropOptions& o) { o.length = std::int64_t{1} << 40; });
  refused([](CropOptions& o) { o.align = 0; });
  refused([](CropOptions& o) { o.redraws = -1; });
  refused([](CropOptions& o) { o.gain_min_db = 1; });
  refused([](CropOptions& o) { o.gain_max_db = std::nan(""); });
  refused([](CropOptions& o) { o.mix_min_db = 1; });
  refused([](CropOptions& o) { o.mix_probability = 1.1; });
  refused([](CropOptions& o) { o.keep_quiet = -0.1; });
  refused([](CropOptions& o) { o.noise_dbfs = INFINITY; });
  refused([](CropOptions& o) { o.quiet_dbfs = std::nan(""); });
}

}  // namespace
}  // namespace tessera::train
