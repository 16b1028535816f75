// The streaming contracts as one check that every layer goes through: any split, any company, any number of
// threads, any instruction set gives the same bits; a state can be copied in mid-stream and is written whole.
#pragma once

#include <vector>

#include "core/layer.h"
#include "tests/random.h"

namespace tessera::test {

/// Lengths of the pieces in which rows are pushed, repeated until they are used up; 0 pushes nothing.
using RowPieces = std::vector<int>;

/// One stream of x [rows, in_channels], ended with its last piece unless `end` is false; on a workspace of
/// exactly the size that the layer asks for.
std::vector<float> run_layer(const Layer& layer, const std::vector<float>& x, const RowPieces& pieces,
                             int threads = 1, bool end = true);

/// Checks every contract on streams of up to `rows` random rows.
void expect_contracts(const Layer& layer, int rows);

}  // namespace tessera::test
