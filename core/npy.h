// Reads and writes NumPy .npy arrays (format 1.0, 2.0, 3.0: magic, version, header length, a Python dict, the
// data). Reads <f4 <f8 <i2 <i4 <i8 |i1 |u1 in C or Fortran order, up to five axes; writes 1.0, <f4 and <i4, C
// order. Leaves out big-endian, structured, object and complex arrays (an error names the dtype), and .npz.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/byte_sink.h"
#include "core/result.h"
#include "core/tensor.h"

namespace tessera {

/// The array as a tensor that owns its data, always in C order. Errors: io, format, unsupported.
Result<Tensor> read_npy(const std::string& path);
/// The same from memory; `name` stands for the file name in errors.
Result<Tensor> parse_npy(std::span<const std::byte> bytes, const std::string& name);

/// Writes `values` (C order, shape.size() of them, else UsageError). The data starts at a multiple of 64.
/// Errors: io.
Result<void> write_npy(const std::string& path, const Shape& shape, std::span<const float> values);
Result<void> write_npy(const std::string& path, const Shape& shape, std::span<const std::int32_t> values);
Result<void> write_npy(const ByteSink& sink, const Shape& shape, std::span<const float> values);
Result<void> write_npy(const ByteSink& sink, const Shape& shape, std::span<const std::int32_t> values);

}  // namespace tessera
