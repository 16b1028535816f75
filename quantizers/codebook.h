// One codebook: the nearest codeword of each row, and the codeword of an index.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/gemm.h"
#include "core/layer.h"

namespace tessera {

class Codebook {
 public:
  /// codewords [size, dimension]. `type` f32 or bf16: bf16 only for codewords that are exact in it. Only a
  /// `searchable` one finds the nearest: the search keeps a packed copy, which decoding alone can do without.
  Codebook(std::span<const float> codewords, int size, int dimension, WeightType type,
           bool searchable = true);

  int size() const { return size_; }
  int dimension() const { return dimension_; }
  std::size_t workspace_bytes(int rows) const;
  /// Index of the codeword with the smallest squared distance to each row [rows, dimension], the lowest on a
  /// tie, at indices[row * index_stride].
  void nearest(const float* rows, int count, std::int32_t* indices, std::ptrdiff_t index_stride,
               StepContext& context) const;
  /// x.c - |c|^2 / 2 of each row x [count, dimension] and codeword c: scores [count, size], the larger the
  /// nearer. Allocates linear_workspace_bytes(count).
  void scores(const float* rows, int count, float* scores, StepContext& context) const;
  /// row[i] += sign * codeword[i]; sign is 1 or -1.
  void accumulate(std::int32_t index, float sign, float* row) const;

 private:
  int size_, dimension_;
  PackedMatrix search_;            // [dimension, size]
  std::vector<float> half_norms_;  // -|c|^2 / 2
  std::vector<float> codewords_;   // [size, dimension]
};

}  // namespace tessera
