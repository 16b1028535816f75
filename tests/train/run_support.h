// What the tests of the training run share: a folder that goes away, files as text, parameters with
// gradients.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "core/autograd/tape.h"
#include "train/parameters.h"

namespace tessera::test {

/// A new empty folder, removed at the end.
class RunFolder {
 public:
  explicit RunFolder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("tessera-" + name + "-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~RunFolder() { std::filesystem::remove_all(path_); }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

 private:
  std::filesystem::path path_;
};

inline std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline Tensor tensor_of(const Shape& shape, const std::vector<float>& values) {
  Tensor tensor = Tensor::zeros(shape);
  std::ranges::copy(values, tensor.f32());
  return tensor;
}

inline std::vector<float> floats_of(const Tensor& tensor) {
  return {tensor.f32(), tensor.f32() + tensor.size()};
}

/// Makes `values` the gradient of a parameter, in place of the one before.
inline void set_gradient(ThreadPool& pool, const Tensor& parameter, const std::vector<float>& values) {
  clear_gradient(parameter);
  Tape tape(pool);
  tape.backward(parameter, tensor_of(parameter.shape(), values));
}

}  // namespace tessera::test
