// Reads and writes safetensors files: 8 bytes of header length (u64 LE), a JSON header, then the tensors'
// bytes. Every offset is checked before use, nothing is copied. Leaves out: dtypes that the core has no name
// for (fp8, u16, complex ...), more than five axes, and checkpoints split over several files
// (docs/weights.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_sink.h"
#include "core/mapped_file.h"
#include "core/result.h"
#include "core/tensor.h"

namespace tessera {

/// Text by key, as safetensors' `__metadata__` holds it; ordered, so that files are deterministic.
using Metadata = std::map<std::string, std::string, std::less<>>;

/// A tensor inside a file. `bytes` has exactly shape.size() * size_of(dtype) bytes, little-endian, C order,
/// and may be unaligned: do not cast it to float*, use to_f32() or memcpy.
struct TensorView {
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
};

/// f32, f16, bf16 (exact) or f64 (rounded to nearest) as floats. Other dtypes: an error (mismatch).
Result<std::vector<float>> to_f32(const TensorView& view);

/// One parsed file, immutable. Views and names stay valid while it lives.
class SafeTensors {
 public:
  static constexpr std::size_t kMaxHeaderBytes = 100'000'000;

  /// Maps the file. Errors: io, format (with offset or tensor name), unsupported (dtype, more than five
  /// axes).
  static Result<std::shared_ptr<const SafeTensors>> open(const std::string& path);
  /// Over memory that must outlive the result; `name` stands for the file name in errors. The same errors.
  static Result<std::shared_ptr<const SafeTensors>> parse(std::span<const std::byte> bytes, std::string name);

  /// The file name, for errors.
  const std::string& name() const { return name_; }
  /// The whole file's bytes (for hashing).
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Tensor names in the order of the header.
  const std::vector<std::string>& names() const { return names_; }
  /// The tensor, or nothing.
  std::optional<TensorView> find(std::string_view name) const;
  /// The tensor, or an error (mismatch) that names file and tensor.
  Result<TensorView> get(std::string_view name) const;
  /// The tensor as floats; with `shape`, an error (mismatch) unless its shape is exactly that.
  Result<std::vector<float>> read_f32(std::string_view name) const;
  Result<std::vector<float>> read_f32(std::string_view name, const Shape& shape) const;
  /// The text under `key`, or nothing.
  std::optional<std::string_view> metadata(std::string_view key) const;
  const Metadata& metadata() const { return metadata_; }

 private:
  SafeTensors() = default;
  static Result<std::shared_ptr<const SafeTensors>> parse(MappedFile file, std::span<const std::byte> bytes,
                                                          std::string name);

  MappedFile file_;  // empty when parsed over memory
  std::span<const std::byte> bytes_;
  std::string name_;
  std::vector<std::string> names_;
  std::map<std::string, TensorView, std::less<>> views_;
  Metadata metadata_;
};

/// A tensor to write; `bytes` little-endian, C order.
struct NamedTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
};

/// Writes a file whose tensors are ordered by (size of the element, largest first; name) whatever the order
/// given, the data starting at a multiple of 64: equal input gives equal bytes. Throws UsageError for two
/// equal names, the name
/// `__metadata__`, text that is not UTF-8 and bytes that do not fit the shape. The file at `path` appears
/// whole or not at all. Errors: io.
Result<void> write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                               const Metadata& metadata = {});
Result<void> write_safetensors(const ByteSink& sink, std::span<const NamedTensor> tensors,
                               const Metadata& metadata = {});

}  // namespace tessera
