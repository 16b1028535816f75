#include "train/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "core/error.h"
#include "tests/train/run_support.h"
#include "train/named_state.h"

namespace tessera::train {
namespace {

using test::floats_of;
using test::RunFolder;
using test::tensor_of;
using test::text_of;
using test::write_text;

Checkpoint some(std::int64_t step, float value = 1.0f) {
  Checkpoint checkpoint;
  checkpoint.step = step;
  checkpoint.metadata = R"({"config": "ü", "at": [1, 2]})";
  checkpoint.tensors.emplace_back("model.w", tensor_of({2, 3}, {value, 2, 3, 4, 5, 6}));
  checkpoint.tensors.emplace_back("ema.w", tensor_of({2}, {-0.0f, 7}));
  checkpoint.tensors.emplace_back("position", Tensor::zeros({1}, DType::i64));
  *checkpoint.tensors.back().second.as<std::int64_t>() = step * 3;
  return checkpoint;
}

CheckpointWriter writer_of(const RunFolder& folder, int keep = 3, std::int64_t keep_every = 0) {
  CheckpointOptions options;
  options.folder = folder / "checkpoints";
  options.keep = keep;
  options.keep_every = keep_every;
  std::vector<std::string> messages;
  return CheckpointWriter::open(options, 0, messages).value();
}

std::vector<std::int64_t> steps_of(const RunFolder& folder) {
  return list_checkpoints(folder / "checkpoints");
}

// Changes one byte, counted from the end.
void spoil(const std::string& path, std::size_t from_end) {
  std::string bytes = text_of(path);
  bytes[bytes.size() - from_end] = static_cast<char>(bytes[bytes.size() - from_end] ^ 1);
  write_text(path, bytes);
}

TEST(Checkpoint, ComesBackAsItWas) {
  const RunFolder folder("checkpoint");
  const std::string path = checkpoint_path(folder.path(), 1200);
  EXPECT_EQ(path, folder / "step-00001200.safetensors");
  ASSERT_TRUE(write_checkpoint(path, some(1200)));
  const Checkpoint read = read_checkpoint(path).value();
  EXPECT_EQ(read.step, 1200);
  EXPECT_EQ(read.metadata, some(0).metadata);
  ASSERT_EQ(read.tensors.size(), 3u);
  const NamedTensors model = part_of(read.tensors, "model.");
  ASSERT_EQ(model.size(), 1u);
  EXPECT_EQ(model[0].first, "w");
  EXPECT_EQ(model[0].second.shape(), Shape({2, 3}));
  EXPECT_EQ(floats_of(model[0].second), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(std::signbit(part_of(read.tensors, "ema.")[0].second.f32()[0]));
  EXPECT_EQ(*part_of(read.tensors, "position")[0].second.as<std::int64_t>(), 3600);
}

TEST(Checkpoint, NoticesEveryKindOfDamage) {
  const RunFolder folder("checkpoint-damage");
  const std::string path = folder / "step-00000001.safetensors";
  ASSERT_TRUE(write_checkpoint(path, some(1)));
  const std::string good = text_of(path);
  spoil(path, 3);
  const auto spoiled = read_checkpoint(path);
  ASSERT_FALSE(spoiled);
  EXPECT_EQ(spoiled.error().code, ErrorCode::damaged);
  EXPECT_NE(spoiled.error().message.find(path + ": damaged: its content has the hash "), std::string::npos);

  for (const std::size_t size : {good.size() - 1, good.size() / 2, std::size_t{5}}) {
    write_text(path, good.substr(0, size));
    ASSERT_FALSE(read_checkpoint(path)) << size;
    EXPECT_EQ(read_checkpoint(path).error().code, ErrorCode::damaged) << size;
  }
  // The metadata and the step are under the hash, too.
  for (const std::string& what : {std::string("[1, 2]"), std::string("step\":\"1")}) {
    std::string changed = good;
    const std::size_t at = changed.find(what);
    ASSERT_NE(at, std::string::npos);
    changed[at + what.size() - (what.back() == ']' ? 2 : 1)] = '7';
    write_text(path, changed);
    ASSERT_FALSE(read_checkpoint(path)) << what;
    EXPECT_EQ(read_checkpoint(path).error().code, ErrorCode::damaged) << what;
  }
  EXPECT_EQ(read_checkpoint(folder / "none").error().code, ErrorCode::io);
}

TEST(CheckpointWriter, WritesACopyInTheBackground) {
  const RunFolder folder("checkpoint-copy");
  CheckpointWriter writer = writer_of(folder);
  Checkpoint checkpoint = some(10);
  ASSERT_TRUE(writer.save(checkpoint));
  checkpoint.tensors[0].second.f32()[0] = 99;  // training goes on
  ASSERT_TRUE(writer.save(some(20, 5.0f)));
  ASSERT_TRUE(writer.wait());
  const Checkpoint first = read_checkpoint(checkpoint_path(folder / "checkpoints", 10)).value();
  EXPECT_EQ(part_of(first.tensors, "model.")[0].second.f32()[0], 1.0f);
  EXPECT_EQ(load_latest(folder / "checkpoints").value().checkpoint.step, 20);
}

TEST(CheckpointWriter, KeepsTheNewestAndEveryNth) {
  const RunFolder folder("checkpoint-keep");
  CheckpointWriter writer = writer_of(folder, 2, 300);
  for (std::int64_t step = 100; step <= 800; step += 100) ASSERT_TRUE(writer.save(some(step)));
  ASSERT_TRUE(writer.wait());
  EXPECT_EQ(steps_of(folder), (std::vector<std::int64_t>{300, 600, 700, 800}));
}

TEST(CheckpointWriter, ReportsAFailedWriteAtTheNextCall) {
  const RunFolder folder("checkpoint-fail");
  CheckpointWriter writer = writer_of(folder, 1);
  ASSERT_TRUE(writer.save(some(1)));
  ASSERT_TRUE(writer.wait());
  // A folder in the place of the file: it can be neither opened nor replaced.
  std::filesystem::create_directory(checkpoint_path(folder / "checkpoints", 2));
  EXPECT_TRUE(writer.save(some(2)));
  const auto failed = writer.save(some(3));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::io);
  EXPECT_NE(failed.error().message.find("step-00000002"), std::string::npos);
  EXPECT_TRUE(writer.wait());  // the third one is whole
  EXPECT_EQ(load_latest(folder / "checkpoints").value().checkpoint.step, 3);
}

TEST(CheckpointWriter, AMistakeInTheProgramComesOutAtTheNextCall) {
  const RunFolder folder("checkpoint-twice");
  CheckpointWriter writer = writer_of(folder);
  Checkpoint twice = some(1);
  twice.tensors.push_back(twice.tensors[0]);
  ASSERT_TRUE(writer.save(twice));
  EXPECT_THROW((void)writer.wait(), UsageError);
}

TEST(CheckpointWriter, TidiesUpAfterARunThatWasKilled) {
  const RunFolder folder("checkpoint-killed");
  {
    CheckpointWriter writer = writer_of(folder);
    for (const std::int64_t step : {100, 200}) ASSERT_TRUE(writer.save(some(step)));
    ASSERT_TRUE(writer.wait());
  }
  write_text(folder / "checkpoints/.tessera-4711-0.tmp", "half a checkpoint");
  write_text(folder / "checkpoints/notes.txt", "mine");
  EXPECT_EQ(load_latest(folder / "checkpoints").value().checkpoint.step, 200);

  CheckpointOptions options;
  options.folder = folder / "checkpoints";
  std::vector<std::string> messages;
  ASSERT_TRUE(CheckpointWriter::open(options, 100, messages));
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_NE(messages[0].find(".tessera-4711-0.tmp, left by a run that was stopped"), std::string::npos);
  EXPECT_NE(messages[1].find("is after step 100"), std::string::npos);
  EXPECT_EQ(steps_of(folder), (std::vector<std::int64_t>{100}));
  EXPECT_TRUE(std::filesystem::exists(folder / "checkpoints/notes.txt"));
  EXPECT_TRUE(std::filesystem::exists(folder / "checkpoints/step-00000200.safetensors.superseded"));
}

TEST(LoadLatest, FallsBackAndSaysSo) {
  const RunFolder folder("checkpoint-fallback");
  CheckpointWriter writer = writer_of(folder);
  for (const std::int64_t step : {1, 2, 3}) ASSERT_TRUE(writer.save(some(step)));
  ASSERT_TRUE(writer.wait());
  const std::string checkpoints = folder / "checkpoints";
  spoil(checkpoint_path(checkpoints, 3), 10);
  std::filesystem::resize_file(checkpoint_path(checkpoints, 2), 100);
  const LatestCheckpoint latest = load_latest(checkpoints).value();
  EXPECT_EQ(latest.checkpoint.step, 1);
  EXPECT_EQ(latest.path, checkpoint_path(checkpoints, 1));
  ASSERT_EQ(latest.messages.size(), 2u);
  EXPECT_NE(latest.messages[0].find("step-00000003.safetensors: damaged"), std::string::npos);
  EXPECT_NE(latest.messages[1].find("step-00000002.safetensors"), std::string::npos);

  spoil(checkpoint_path(checkpoints, 1), 10);
  const auto none = load_latest(checkpoints);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::damaged);
  for (const char* name : {"step-00000001", "step-00000002", "step-00000003"}) {
    EXPECT_NE(none.error().message.find(name), std::string::npos) << name;
  }
  EXPECT_EQ(load_latest(folder / "nowhere").error().code, ErrorCode::io);
}

TEST(LoadLatest, DoesNotTakeAFileUnderAnotherName) {
  const RunFolder folder("checkpoint-renamed");
  ASSERT_TRUE(write_checkpoint(checkpoint_path(folder.path(), 1), some(1)));
  std::filesystem::copy_file(checkpoint_path(folder.path(), 1), checkpoint_path(folder.path(), 9));
  const LatestCheckpoint latest = load_latest(folder.path()).value();
  EXPECT_EQ(latest.checkpoint.step, 1);
  EXPECT_EQ(latest.messages.size(), 1u);
}

}  // namespace
}  // namespace tessera::train
