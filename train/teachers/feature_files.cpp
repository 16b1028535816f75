// Finding, reading and checking files of features; averaging them down to the codec's frames.
#include "train/teachers/feature_files.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <vector>

#include "core/npy.h"
#include "core/safetensors.h"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExtensions[] = {".npy", ".safetensors"};
constexpr std::int64_t kMostValues = 65536;  // per frame

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values = {};
};

Result<std::vector<float>> read_values(const std::string& path, Shape& shape) {
  if (fs::path(path).extension() == ".npy") {
    const auto array = read_npy(path);
    if (!array) return array.error();
    shape = array->shape();
    const auto values = to_f32(
        {array->dtype(), shape, std::span(static_cast<const std::byte*>(array->raw()), array->bytes())});
    if (values) return values;
    return Error{values.error().code, path + ": " + values.error().message};
  }
  const auto file = SafeTensors::open(path);
  if (!file) return file.error();
  const auto& names = (*file)->names();
  const std::string name = names.size() == 1 ? names.front() : "features";
  const auto view = (*file)->find(name);
  if (!view) {
    return Error{ErrorCode::mismatch, path + ": expected one tensor, or one named features, got " +
                                          std::to_string(names.size()) + " with other names"};
  }
  shape = view->shape;
  return (*file)->read_f32(name);
}

/// [rows, columns] of a file, all of them finite.
Result<Matrix> read_matrix(const std::string& path) {
  Shape shape;
  auto values = read_values(path, shape);
  if (!values) return values.error();
  const bool batch = shape.rank() == 3 && shape[0] == 1;
  Matrix matrix;
  if (batch || shape.rank() == 2) {
    matrix.rows = shape[shape.rank() - 2];
    matrix.columns = shape[shape.rank() - 1];
  }
  if (matrix.rows < 1 || matrix.columns < 1 || matrix.columns > kMostValues) {
    return Error{ErrorCode::mismatch, path + ": expected features [frames, E], E from 1 to " +
                                          std::to_string(kMostValues) + ", got " + shape.str()};
  }
  const auto bad =
      std::find_if(values->begin(), values->end(), [](float value) { return !std::isfinite(value); });
  if (bad != values->end()) {
    return Error{ErrorCode::format, path + ": expected finite values, got " + std::to_string(*bad) +
                                        " in frame " +
                                        std::to_string((bad - values->begin()) / matrix.columns)};
  }
  matrix.values = std::move(*values);
  return matrix;
}

/// The first file of features in the folder, in the order of their paths.
Result<std::string> first_file(const std::string& folder) {
  std::error_code error;
  std::optional<std::string> first;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string(), extension = entry->path().extension().string();
    const bool kept =
        std::find(std::begin(kExtensions), std::end(kExtensions), extension) != std::end(kExtensions);
    std::error_code ignored;
    if (kept && entry->is_regular_file(ignored) && (!first || path < *first)) first = path;
  }
  if (error) return Error{ErrorCode::io, folder + ": cannot read the folder of features: " + error.message()};
  if (!first) {
    return Error{ErrorCode::mismatch, folder + ": expected .npy or .safetensors files of features, got none"};
  }
  return *first;
}

}  // namespace

Result<std::unique_ptr<FeatureFiles>> FeatureFiles::open(const std::string& folder,
                                                         const FeatureFilesOptions& options) {
  if (options.sample_rate_hz < 1 || !(options.file_rate_hz > 0) ||
      options.file_rate_hz > options.sample_rate_hz || options.average < 1 || options.tolerance < 0) {
    return Error{
        ErrorCode::usage,
        "expected features with 0 < file rate <= sample rate, an average of 1 or more and a tolerance of 0 "
        "or more, got " +
            std::to_string(options.file_rate_hz) + ", " + std::to_string(options.sample_rate_hz) + ", " +
            std::to_string(options.average) + " and " + std::to_string(options.tolerance)};
  }
  const auto first = first_file(folder);
  if (!first) return first.error();
  const auto matrix = read_matrix(*first);
  if (!matrix) return matrix.error();
  std::unique_ptr<FeatureFiles> files(new FeatureFiles());
  files->folder_ = folder;
  files->options_ = options;
  files->dimension_ = static_cast<int>(matrix->columns);
  return files;
}

Result<Tensor> FeatureFiles::features(const std::string& name, std::span<const float> pcm,
                                      ThreadPool&) const {
  // A name that would lead out of the folder is looked up by its last part only.
  const fs::path relative = fs::path(name).lexically_normal().replace_extension();
  std::vector<fs::path> places;
  if (relative.is_relative() && !relative.empty() && *relative.begin() != "..") places.push_back(relative);
  if (relative.has_parent_path()) places.push_back(relative.filename());
  std::string path;
  for (const fs::path& place : places) {
    for (const char* extension : kExtensions) {
      const fs::path candidate = fs::path(folder_) / (place.string() + extension);
      std::error_code ignored;
      if (path.empty() && fs::is_regular_file(candidate, ignored)) path = candidate.string();
    }
  }
  if (path.empty()) {
    return Error{ErrorCode::io, folder_ + ": no features of " + name + ": expected " +
                                    (places.empty() ? std::string("a name") : places.front().string()) +
                                    ".npy or .safetensors"};
  }

  const auto matrix = read_matrix(path);
  if (!matrix) return matrix.error();
  if (matrix->columns != dimension_) {
    return Error{ErrorCode::mismatch, path + ": expected " + std::to_string(dimension_) +
                                          " values per frame as in the other files, got " +
                                          std::to_string(matrix->columns)};
  }
  const double lasts = static_cast<double>(pcm.size()) * options_.file_rate_hz / options_.sample_rate_hz;
  if (std::abs(static_cast<double>(matrix->rows) - lasts) > options_.tolerance) {
    return Error{ErrorCode::mismatch, path + ": expected " + std::to_string(std::llround(lasts)) +
                                          " frames, give or take " + std::to_string(options_.tolerance) +
                                          ", for " + std::to_string(pcm.size()) + " samples at " +
                                          std::to_string(options_.sample_rate_hz) + " Hz, got " +
                                          std::to_string(matrix->rows)};
  }

  Tensor out = Tensor::zeros({frames(static_cast<std::int64_t>(pcm.size())), dimension_});
  const float share = 1.0f / static_cast<float>(options_.average);
  for (std::int64_t row = 0; row < out.dim(0); ++row) {
    float* to = out.f32() + row * dimension_;
    for (std::int64_t i = row * options_.average; i < (row + 1) * options_.average; ++i) {
      const float* from = matrix->values.data() + std::min(i, matrix->rows - 1) * dimension_;
      for (int c = 0; c < dimension_; ++c) to[c] += from[c];
    }
    for (int c = 0; c < dimension_; ++c) to[c] *= share;
  }
  return out;
}

}  // namespace tessera::train
