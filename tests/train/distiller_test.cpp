// Distillation in a run: the teacher's features, standardized over the data, at the places of the crops.
#include "train/distiller.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/safetensors.h"
#include "tests/random.h"
#include "tests/train/data_support.h"

namespace tessera::train {
namespace {

constexpr int kRate = 8000, kFrame = 80, kTeacherFrame = 160, kFrames = 40, kWidth = 3;

class DistillerTest : public testing::Test {
 protected:
  DistillerTest() {
    for (const int i : {0, 1}) {
      test::write_audio(folder_ / ("sound/" + std::to_string(i) + ".wav"), kRate, 1,
                        test::markers(i, kFrames * kTeacherFrame));
    }
    config_.model.sample_rate_hz = kRate;
    config_.model.hop = kFrame;
    config_.model.latent = 4;
    config_.data.train = {folder_ / "sound"};
    config_.losses.distillation = 1;
    config_.teacher.kind = TeacherConfig::Kind::features;
    config_.teacher.frame_rate_hz = static_cast<double>(kRate) / kTeacherFrame;
    DatasetOptions options;
    options.sources.sources = config_.data.train;
    options.sample_rate_hz = kRate;
    options.cache_folder = folder_ / "cache";
    dataset_.emplace(Dataset::open(options).value());
  }

  // Feature e of frame j of recording i is scale random + offset.
  void write_features(const std::string& name, float scale, float offset) {
    config_.teacher.path = folder_ / name;
    for (const int i : {0, 1}) {
      std::vector<float> values =
          tessera::test::random_floats(kFrames * kWidth, static_cast<std::uint64_t>(i) + 5);
      for (float& value : values) value = scale * value + offset;
      const NamedTensor tensor{"features", DType::f32, {kFrames, kWidth}, std::as_bytes(std::span(values))};
      std::filesystem::create_directories(config_.teacher.path);
      write_safetensors(config_.teacher.path + "/" + std::to_string(i) + ".safetensors", {&tensor, 1})
          .value();
    }
  }

  // Of a fixed latent, for a crop of recording 1 that begins at teacher frame `first`.
  float loss(std::int64_t first) {
    ThreadPool pool;
    Tape tape(pool);
    Parameters parameters(1);
    const auto distiller = Distiller::open(config_, *dataset_, parameters, pool, {}).value();
    EXPECT_EQ(distiller->align(), kTeacherFrame);
    Tensor z = Tensor::zeros({1, 20, 4});
    const std::vector<float> values = tessera::test::random_floats(80, 9);
    std::copy(values.begin(), values.end(), z.f32());
    Batch batch;
    CropInfo crop;
    crop.recording = 1;
    crop.begin = first * kTeacherFrame;
    crop.length = 10 * kTeacherFrame;
    batch.crops = {crop};
    return *distiller->loss(tape, z, batch).f32();
  }

  test::Scratch folder_;
  TrainConfig config_;
  std::optional<Dataset> dataset_;
};

TEST_F(DistillerTest, WhatAllFramesHaveInCommonDoesNotCount) {
  write_features("plain", 1, 0);
  const float plain = loss(3);
  write_features("shifted", 20, 100);
  EXPECT_NEAR(loss(3), plain, 1e-4);
  EXPECT_GT(plain, 0.5f);  // random against random; raw features far from 0 would nearly agree
}

TEST_F(DistillerTest, FeaturesAreThoseOfTheCropsPlace) {
  write_features("plain", 1, 0);
  EXPECT_NE(loss(3), loss(4));
}

TEST_F(DistillerTest, RefusesRatesThatDoNotFit) {
  write_features("plain", 1, 0);
  config_.model.hop = 96;
  ThreadPool pool;
  Parameters parameters;
  const auto distiller = Distiller::open(config_, *dataset_, parameters, pool, {});
  ASSERT_FALSE(distiller);
  EXPECT_NE(distiller.error().message.find("teacher: expected frames of a whole multiple"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera::train
