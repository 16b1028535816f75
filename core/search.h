// Nearest codeword: the search of every vector quantizer here. The nearest by squared distance is the largest
// of x.c - |c|^2 / 2; the scores are a gemm that starts from the bias -|c|^2 / 2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

/// For each row of scores [rows, count]: the index of the largest, the lowest index on a tie. NaN never wins;
/// a row of nothing but NaN gives 0.
void argmax_rows(const float* scores, std::size_t rows, int count, std::ptrdiff_t stride,
                 std::int32_t* indices);

}  // namespace tessera
