// Features kept in files: what is read, how frames are matched to the recording, and every way to be wrong.
#include "train/teachers/feature_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "core/npy.h"
#include "core/safetensors.h"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

class FeatureFilesTest : public testing::Test {
 protected:
  FeatureFilesTest() : folder_(fs::temp_directory_path() / ("tessera_features_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "train" / "a");
  }
  ~FeatureFilesTest() override { fs::remove_all(folder_); }

  /// [rows, columns] that count up from `first`.
  void write(const std::string& name, std::int64_t rows, std::int64_t columns, float first = 0) const {
    std::vector<float> values(static_cast<std::size_t>(rows * columns));
    std::iota(values.begin(), values.end(), first);
    ASSERT_TRUE(write_npy(path(name), {rows, columns}, values));
  }
  template <class T>
  void write_tensors(const std::string& name, const std::vector<std::string>& tensors, DType type,
                     const Shape& shape, const std::vector<T>& values) const {
    std::vector<NamedTensor> named;
    for (const std::string& tensor : tensors) {
      named.push_back({tensor, type, shape, std::as_bytes(std::span(values))});
    }
    ASSERT_TRUE(write_safetensors(path(name), named));
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Result<std::unique_ptr<FeatureFiles>> open(const FeatureFilesOptions& options = {}) const {
    return FeatureFiles::open(folder_.string(), options);
  }
  Result<Tensor> read(const FeatureFiles& files, const std::string& name, std::size_t samples) {
    return files.features(name, std::vector<float>(samples), pool_);
  }
  static std::vector<float> values_of(const Tensor& x) { return {x.f32(), x.f32() + x.size()}; }

  void expect_error(const Result<Tensor>& result, ErrorCode code, const std::string& text) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, code);
    EXPECT_NE(result.error().message.find(text), std::string::npos) << result.error().message;
  }

  fs::path folder_;
  ThreadPool pool_;
};

TEST_F(FeatureFilesTest, ReadsTheFileOfTheRecording) {
  write("train/a/one.npy", 10, 3, 100);
  write("one.npy", 10, 3, 200);
  write("two.part.npy", 10, 3, 300);
  const auto files = open().value();
  EXPECT_EQ(files->dimension(), 3);
  EXPECT_EQ(files->sample_rate_hz(), 16000);
  EXPECT_EQ(files->frame_rate_hz(), 50);
  const auto first = [&](const std::string& name) { return *read(*files, name, 3200).value().f32(); };
  EXPECT_EQ(first("train/a/one.flac"), 100);
  EXPECT_EQ(first("train/./a/one.opus"), 100);
  EXPECT_EQ(first("train/b/one.flac"), 200);  // by its last part
  EXPECT_EQ(first("/data/train/a/one.flac"), 200);
  EXPECT_EQ(first("../train/a/one.flac"), 200);
  EXPECT_EQ(first("two.part.wav"), 300);
  const auto features = read(*files, "one.wav", 3200).value();
  EXPECT_EQ(features.shape(), (Shape{10, 3}));
  EXPECT_EQ(features.f32()[29], 229);
}

TEST_F(FeatureFilesTest, ReadsEveryFloatAndLayout) {
  const std::vector<float> wide = {1, -2, 0.5f, 4};
  write_tensors("f32.safetensors", {"any"}, DType::f32, {2, 2}, wide);
  write_tensors("batch.safetensors", {"features", "other"}, DType::f32, {1, 2, 2}, wide);
  const std::vector<std::uint16_t> half = {0x3c00, 0xc000, 0x3800, 0x4400};
  write_tensors("f16.safetensors", {"features"}, DType::f16, {2, 2}, half);
  ASSERT_TRUE(write_npy(path("npy.npy"), {2, 2}, wide));
  const auto files = open().value();
  for (const std::string name : {"f32", "batch", "f16", "npy"}) {
    EXPECT_EQ(values_of(read(*files, name, 640).value()), wide) << name;
  }
}

TEST_F(FeatureFilesTest, AveragesToTheCodecsFrames) {
  write("a.npy", 10, 1);  // 0 to 9
  FeatureFilesOptions options;
  options.average = 4;
  const auto files = open(options).value();
  EXPECT_EQ(files->frame_rate_hz(), 12.5);
  // 10 frames fill two and a half; what is missing repeats the last.
  EXPECT_EQ(values_of(read(*files, "a", 3200).value()), (std::vector<float>{1.5f, 5.5f, 8.75f}));
  EXPECT_EQ(read(*files, "a", 2561).value().dim(0), 3);
  EXPECT_EQ(values_of(read(*files, "a", 2560).value()), (std::vector<float>{1.5f, 5.5f}));
}

TEST_F(FeatureFilesTest, FramesMustFitTheRecording) {
  write("a.npy", 10, 2);
  const auto files = open().value();
  EXPECT_EQ(read(*files, "a", 8 * 320).value().dim(0), 8);  // two more: cut
  const auto longer = read(*files, "a", 12 * 320).value();  // two fewer: the last again
  EXPECT_EQ(longer.dim(0), 12);
  EXPECT_EQ(longer.f32()[23], 19);
  expect_error(read(*files, "a", 8 * 320 - 1), ErrorCode::mismatch,
               "a.npy: expected 8 frames, give or take 2, for 2559 samples at 16000 Hz, got 10");
  expect_error(read(*files, "a", 12 * 320 + 1), ErrorCode::mismatch, "expected 12 frames");
}

TEST_F(FeatureFilesTest, SaysWhatIsWrongWithAFile) {
  write("a.npy", 4, 2);
  write("narrow.npy", 4, 1);
  ASSERT_TRUE(write_npy(path("flat.npy"), {8}, std::vector<float>(8)));
  ASSERT_TRUE(write_npy(path("empty.npy"), {0, 2}, std::vector<float>()));
  ASSERT_TRUE(write_npy(path("integers.npy"), {4, 2}, std::vector<std::int32_t>(8)));
  std::vector<float> infinite(8);
  infinite[5] = HUGE_VALF;
  ASSERT_TRUE(write_npy(path("infinite.npy"), {4, 2}, infinite));
  write_tensors("several.safetensors", {"x", "y"}, DType::f32, {4, 2}, std::vector<float>(8));
  write_tensors("long.safetensors", {"x"}, DType::i64, {4, 2}, std::vector<std::int64_t>(8));
  std::ofstream(path("text.npy")) << "not an array";
  const auto files = open().value();
  const auto wrong = [&](const std::string& name, ErrorCode code, const std::string& text) {
    SCOPED_TRACE(name);
    expect_error(read(*files, name, 4 * 320), code, text);
  };
  wrong("narrow", ErrorCode::mismatch,
        "narrow.npy: expected 2 values per frame as in the other files, got 1");
  wrong("flat", ErrorCode::mismatch, "got [8]");
  wrong("empty", ErrorCode::mismatch, "got [0, 2]");
  wrong("integers", ErrorCode::mismatch, "integers.npy: ");
  wrong("infinite", ErrorCode::format, "infinite.npy: expected finite values, got inf in frame 2");
  wrong("several", ErrorCode::mismatch, "one tensor, or one named features, got 2");
  wrong("long", ErrorCode::mismatch, "long.safetensors: ");
  wrong("text", ErrorCode::format, "text.npy");
  wrong("train/missing.flac", ErrorCode::io,
        "no features of train/missing.flac: expected train/missing.npy or .safetensors");
  wrong("", ErrorCode::io, "expected a name");
}

TEST_F(FeatureFilesTest, SaysWhatIsWrongWithTheFolder) {
  EXPECT_EQ(FeatureFiles::open(path("nowhere")).error().code, ErrorCode::io);
  EXPECT_EQ(open().error().code, ErrorCode::mismatch);  // no files
  write("train/a/one.npy", 2, 2);
  FeatureFilesOptions options;
  options.average = 0;
  EXPECT_EQ(open(options).error().code, ErrorCode::usage);
  options = {};
  options.file_rate_hz = -1;
  EXPECT_EQ(open(options).error().code, ErrorCode::usage);
  EXPECT_TRUE(open());
  std::ofstream(path("a.npy")) << "comes first and is no array";
  EXPECT_EQ(open().error().code, ErrorCode::format);
}

}  // namespace
}  // namespace tessera::train
