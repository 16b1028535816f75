// Any model that Tessera runs, its files as `tessera encode` writes them: the built-in one or a weights file
// of any family. Operating points are numbers of codebooks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/bench/codec_runner.h"
#include "core/gemm.h"
#include "core/result.h"

namespace tessera::bench {

struct TesseraOptions {
  std::string model = {};           ///< weights file; empty: the built-in model
  std::vector<int> codebooks = {};  ///< one point each; empty: every number that the model has
  WeightType precision = WeightType::f32;
  std::string name = {};  ///< empty: that of the model, or its file name without ending
};

/// Loads the model, which all runs share. A packet is a frame; lost ones are concealed by the decoder.
/// Errors: those of loading; usage (a number of codebooks that the model does not have).
Result<std::unique_ptr<CodecRunner>> make_tessera_runner(const TesseraOptions& options);

}  // namespace tessera::bench
