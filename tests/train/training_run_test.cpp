// A whole run on made-up sound: its folder, and that stopping it at any moment changes nothing.
#include "train/training_run.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>
#include <thread>

#include "codec/codec.h"
#include "core/hash.h"
#include "core/npy.h"
#include "tests/random.h"
#include "tests/train/run_support.h"
#include "train/checkpoint.h"
#include "train/log.h"
#include "train/model_file.h"
#include "train/training_step.h"

namespace tessera::train {
namespace {

using test::RunFolder;
using test::text_of;

class TrainingRunTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 4; ++i) {
      const std::vector<float> pcm = test::test_sound(12000, static_cast<std::uint64_t>(i) + 1);
      std::string bytes(pcm.size() * 2, '\0');
      for (std::size_t t = 0; t < pcm.size(); ++t) {
        const auto sample = static_cast<std::int16_t>(pcm[t] * 20000);
        bytes[2 * t] = static_cast<char>(sample & 0xff);
        bytes[2 * t + 1] = static_cast<char>(sample >> 8);
      }
      test::write_text(folder_ / ("sound" + std::to_string(i) + ".wav"), header(bytes.size()) + bytes);
    }
  }

  // Of a WAV file at 8000 Hz, mono, 16 bits.
  static std::string header(std::size_t size) {
    const auto number = [](std::size_t value, int bytes) {
      std::string text;
      for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
      return text;
    };
    return "RIFF" + number(36 + size, 4) + "WAVEfmt " + number(16, 4) + number(1, 2) + number(1, 2) +
           number(8000, 4) + number(16000, 4) + number(2, 2) + number(16, 2) + "data" + number(size, 4);
  }

  TrainConfig config() const {
    TrainConfig config;
    config.data.train = {folder_.path()};
    config.data.exclude = {"*.input.wav", "*.decoded.wav"};
    config.data.cache = folder_ / "cache";
    config.data.seconds = 0.4;
    config.data.batch = 2;
    config.model.sample_rate_hz = 8000;
    config.model.hop = 40;
    config.model.channels = 48;
    config.model.latent = 16;
    config.model.encoder = {1};
    config.model.decoder = {1, 2};
    config.model.codebooks = 3;
    config.model.codebook_size = 16;
    config.losses.mel_windows = {64, 256};
    config.losses.envelope = 0.5;
    config.discriminators.stft = {64};
    config.discriminators.channels = 4;
    config.discriminators.start_step = 6;
    config.optimizer.warmup_steps = 4;
    config.run.steps = 20;
    config.run.threads = 2;
    config.run.log_every = 3;
    config.run.checkpoint_every = 4;
    config.run.examples_every = 10;
    return config;
  }
  RunOptions options(const char* name) const {
    RunOptions options;
    options.folder = folder_ / name;
    options.quiet = true;
    return options;
  }
  // Weights, and everything else that a step may change.
  std::string last_state(const char* name) const {
    const auto latest = load_latest(folder_ / name + "/checkpoints");
    std::string hashes = std::to_string(latest->checkpoint.step);
    for (const auto& [tensor_name, tensor] : latest->checkpoint.tensors) {
      hashes += "\n" + tensor_name + " " +
                hex(content_hash({static_cast<const std::byte*>(tensor.raw()), tensor.bytes()}));
    }
    return hashes;
  }

  RunFolder folder_{"run"};
};

TEST_F(TrainingRunTest, LeavesAModelThatCodes) {
  const auto result = start_run(config(), options("a"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->finished);
  EXPECT_EQ(result->steps, 20);
  const auto codec = Codec::load(result->model);
  ASSERT_TRUE(codec) << codec.error().message;
  EXPECT_EQ((*codec)->info().codebooks, 3);
  const auto log = read_metrics(folder_ / "a/log.csv");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->steps, (std::vector<std::int64_t>{3, 6, 9, 10, 12, 15, 18, 20}));
  const auto column = std::ranges::find(log->columns, "heldout_log_mel_3") - log->columns.begin();
  EXPECT_GT(log->values.back()[static_cast<std::size_t>(column)], 0);
  EXPECT_NE(text_of(folder_ / "a/report.html").find("<svg"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "a/examples/sound0.png"));
}

TEST_F(TrainingRunTest, ThreadsChangeNothing) {
  TrainConfig one = config(), three = config();
  one.run.threads = 1;
  three.run.threads = 3;
  ASSERT_TRUE(start_run(one, options("one")));
  ASSERT_TRUE(start_run(three, options("three")));
  EXPECT_EQ(last_state("one"), last_state("three"));
}

TEST_F(TrainingRunTest, StoppedAndResumedIsAsIfNeverStopped) {
  ASSERT_TRUE(start_run(config(), options("whole")));
  RunOptions stopping = options("parts");
  int asked = 0;
  stopping.stop = [&asked] { return ++asked == 7; };
  const auto first = start_run(config(), stopping);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_FALSE(first->finished);
  EXPECT_EQ(first->steps, 7);
  EXPECT_TRUE(read_model_file(first->model)) << first->model;
  const auto second = resume_run(options("parts"));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(last_state("parts"), last_state("whole"));
  EXPECT_EQ(text_of(folder_ / "parts/log.csv"), text_of(folder_ / "whole/log.csv"));
  EXPECT_EQ(text_of(folder_ / "parts/model.safetensors"), text_of(folder_ / "whole/model.safetensors"));
}

// kill -9 at moments that the clock chooses, and once with the last checkpoint cut short, until the run is
// done: 50 steps.
TEST_F(TrainingRunTest, KilledAndResumedIsAsIfNeverKilled) {
  TrainConfig longer = config();
  longer.run.steps = 50;
  ASSERT_TRUE(start_run(longer, options("whole")));
  const RunOptions killed = options("killed");
  bool finished = false;
  int kills = 0;
  for (int round = 0; round < 40 && !finished; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      const bool started = std::filesystem::exists(killed.folder + "/config.json");
      const auto result = started ? resume_run(killed) : start_run(longer, killed);
      _exit(result && result->finished ? 0 : 1);
    }
    ASSERT_GT(child, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(150 + 130 * round));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    finished = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    ASSERT_TRUE(finished || WIFSIGNALED(status)) << "the run failed by itself";
    kills += finished ? 0 : 1;
    const std::vector<std::int64_t> steps = list_checkpoints(killed.folder + "/checkpoints");
    if (!finished && round == 2 && steps.size() > 1) {
      const std::string path = checkpoint_path(killed.folder + "/checkpoints", steps.back());
      std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    }
  }
  ASSERT_TRUE(finished);
  EXPECT_GT(kills, 0);
  EXPECT_EQ(last_state("killed"), last_state("whole"));
  EXPECT_EQ(text_of(folder_ / "killed/log.csv"), text_of(folder_ / "whole/log.csv"));
}

TEST_F(TrainingRunTest, StartsFromAModelFileAndLearnsFromATeacherToo) {
  TrainConfig first = config();
  first.run.steps = 3;
  first.run.examples_every = 0;  // evaluates at the end alone
  const auto before = start_run(first, options("first"));
  ASSERT_TRUE(before) << before.error().message;
  const std::string features_folder = folder_ / "features";
  std::filesystem::create_directory(features_folder);
  for (int i = 0; i < 4; ++i) {  // of 12000 samples, at 40 frames a second
    std::vector<float> features(60 * 2);
    for (std::size_t k = 0; k < features.size(); ++k) features[k] = static_cast<float>(k * k % 7);
    ASSERT_TRUE(write_npy(features_folder + "/sound" + std::to_string(i) + ".npy", {60, 2}, features));
  }
  TrainConfig second = first;
  second.model.from = before->model;
  second.losses.distillation = 1;
  second.teacher.kind = TeacherConfig::Kind::features;
  second.teacher.path = features_folder;
  second.teacher.frame_rate_hz = 40;
  second.optimizer.learning_rate = 0;
  const auto after = start_run(second, options("second"));
  ASSERT_TRUE(after) << after.error().message;
  const ModelFile a = read_model_file(before->model).value(), b = read_model_file(after->model).value();
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    EXPECT_EQ(a.weights[i].first, b.weights[i].first);
    EXPECT_EQ(test::floats_of(a.weights[i].second), test::floats_of(b.weights[i].second))
        << a.weights[i].first;
  }
}

TEST_F(TrainingRunTest, DiscriminatorsLearnBeforeTheCodecDoesFromThem) {
  TrainConfig leading = config();
  leading.run.steps = 12;
  leading.discriminators.start_step = 9;
  leading.discriminators.lead_steps = 4;
  leading.run.log_every = 1;
  ASSERT_TRUE(start_run(leading, options("a")));
  const auto log = read_metrics(folder_ / "a/log.csv").value();
  const auto first_of = [&](const char* name) {
    const auto column = std::ranges::find(log.columns, name) - log.columns.begin();
    return std::ranges::find_if(log.values,
                                [column](const std::vector<double>& row) {
                                  return !std::isnan(row[static_cast<std::size_t>(column)]);
                                }) -
           log.values.begin();
  };
  EXPECT_EQ(first_of("discriminator"), 5);
  EXPECT_EQ(first_of("adversarial"), 9);
}

TEST_F(TrainingRunTest, ABatchThatGoesWrongIsNamed) {
  TrainConfig broken = config();
  ThreadPool pool(2);
  auto step = TrainingStep::make(broken, pool).value();
  Batch batch;
  batch.audio = Tensor::zeros({2, crop_samples(broken)});
  const std::vector<float> pcm = test::test_sound(static_cast<std::size_t>(batch.audio.size()));
  std::ranges::copy(pcm, batch.audio.f32());
  ASSERT_TRUE(step->initialize(batch.audio));
  ASSERT_TRUE(step->run(batch, "good.wav"));
  batch.audio.f32()[100] = std::numeric_limits<float>::quiet_NaN();
  const auto report = step->run(batch, "bad.wav at 3.20 s");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::damaged);
  for (const char* part : {"step 1", "commitment", "bad.wav at 3.20 s"}) {
    EXPECT_NE(report.error().message.find(part), std::string::npos) << report.error().message;
  }
}

TEST_F(TrainingRunTest, RefusesAFolderWithARunAndOtherData) {
  TrainConfig short_run = config();
  short_run.run.steps = 4;
  ASSERT_TRUE(start_run(short_run, options("a")));
  const auto again = start_run(short_run, options("a"));
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("--resume"), std::string::npos);
  std::filesystem::copy(folder_ / "sound0.wav", folder_ / "sound9.wav");
  const auto resumed = resume_run(options("a"), 8);
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().code, ErrorCode::mismatch) << resumed.error().message;
}

}  // namespace
}  // namespace tessera::train
