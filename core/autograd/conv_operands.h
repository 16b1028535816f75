// Operands of a convolution's products in either precision, and temporary memory. The products are written
// once over the two kinds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/autograd/tape.h"
#include "core/gemm_bf16.h"

namespace tessera::ops {

inline std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}
inline int divide_up(int a, int b) {
  return (a + b - 1) / b;
}

/// Temporary memory of a step, aligned to 64 bytes, not cleared.
template <class T>
class Scratch {
 public:
  Scratch() = default;
  Scratch(Tape& tape, std::size_t count)
      : memory_(tape.make({static_cast<std::int64_t>((count * sizeof(T) + 3) / 4)})) {}
  T* data() { return memory_.as<T>(); }
  const T* data() const { return memory_.as<T>(); }

 private:
  Tensor memory_;
};

/// body(begin, end) for stretches of [0, count), the same ones for any number of threads.
template <class Body>
void for_stretches(ThreadPool& pool, std::int64_t count, std::int64_t stretch, const Body& body) {
  const std::int64_t stretches = (count + stretch - 1) / stretch;
  pool.parallel_for(static_cast<int>(stretches), [&](int i) {
    const std::int64_t begin = i * stretch;
    body(begin, std::min(begin + stretch, count));
  });
}

struct F32Operands {
  using Element = float;
  using Matrix = PackedMatrix;
  using Args = GemmArgs;

  static void convert(const float* from, std::size_t count, float* to) {
    std::memcpy(to, from, count * sizeof(float));
  }
  static std::size_t packed_elements(int k, int n, int /*segments*/) { return PackedMatrix::floats_of(k, n); }
  static Matrix pack(float* memory, const PackedMatrix::Source& source, int k, int n, int /*segments*/,
                     ThreadPool& pool) {
    return PackedMatrix::pack_into(memory, source, k, n, pool);
  }
  static void multiply(const Args& args, ThreadPool& pool) { gemm(args, pool); }
};

struct Bf16Operands {
  using Element = std::uint16_t;
  using Matrix = Bf16Matrix;
  using Args = Bf16GemmArgs;

  static void convert(const float* from, std::size_t count, std::uint16_t* to) {
    round_to_bf16(from, count, to);
  }
  static std::size_t packed_elements(int k, int n, int segments) {
    return Bf16Matrix::elements_of(k, n, segments);
  }
  static Matrix pack(std::uint16_t* memory, const PackedMatrix::Source& source, int k, int n, int segments,
                     ThreadPool& pool) {
    return Bf16Matrix::pack_into(memory, source, k, n, segments, pool);
  }
  static void multiply(const Args& args, ThreadPool& pool) { gemm_bf16(args, pool); }
};

}  // namespace tessera::ops
