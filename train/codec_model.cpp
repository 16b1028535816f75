#include "train/codec_model.h"

#include <algorithm>

#include "core/autograd/conv.h"
#include "core/autograd/elementwise.h"
#include "core/autograd/gain.h"
#include "core/autograd/pitch_filter.h"
#include "core/autograd/rearrange.h"
#include "core/autograd/spectral_smoother.h"
#include "core/error.h"
#include "core/spectral.h"

namespace tessera::train {
namespace {

using Kind = TesseraBlock::Kind;

constexpr float kBranchVariance = 0.01f;  // of a residual branch at the start, relative to its input's

// A causal convolution: y[t] sees x up to the last row of its stride.
ops::Conv1dOptions causal(int kernel, int stride, int dilation, Activation post = Activation::none) {
  ops::Conv1dOptions options;
  options.dilation = dilation;
  options.stride = stride;
  options.pad_left = (kernel - 1) * dilation + 1 - stride;
  options.post = post;
  return options;
}

// [rows, columns] -> [columns, 1, rows] or [columns, rows, 1].
Tensor transposed(const Tensor& x, const Shape& shape) {
  Tensor y = Tensor::zeros(shape);
  for (std::int64_t i = 0; i < x.dim(0); ++i) {
    for (std::int64_t j = 0; j < x.dim(1); ++j) y.f32()[j * x.dim(0) + i] = x.f32()[i * x.dim(1) + j];
  }
  return y;
}

void expect_chain(const char* side, const std::vector<TesseraBlock>& blocks, int in, int out) {
  for (const TesseraBlock& block : blocks) {
    if (block.in != in) {
      fail("codec_model", std::string(side) + ": a block from " + std::to_string(in) + " channels",
           "one from " + std::to_string(block.in));
    }
    in = block.out;
  }
  if (in != out) {
    fail("codec_model", std::string(side) + ": " + std::to_string(out) + " channels at the end",
         std::to_string(in));
  }
}

}  // namespace

TransformTables mdct_tables(const TesseraConfig& config) {
  if (config.window != 2 * config.hop) {
    fail("mdct_tables", "a window of twice the hop " + std::to_string(config.hop),
         std::to_string(config.window));
  }
  TransformTables tables;
  const std::vector<float> basis = mdct_basis(config.hop);
  tables.basis = Tensor::zeros({config.hop, config.window});
  std::copy(basis.begin(), basis.end(), tables.basis.f32());
  tables.scale = Tensor::zeros({config.hop});
  std::fill_n(tables.scale.f32(), config.hop, 1.0f);
  return tables;
}

CodecModel::CodecModel(const TesseraConfig& config, const TransformTables& tables, Parameters& parameters)
    : config_(config) {
  expect_chain("encoder", config.encoder, 1, config.latent);
  expect_chain("decoder", config.decoder, config.latent, 1);
  for (const TesseraBlock& block : config.encoder) {
    samples_per_frame_ *= block.transforms() ? config.hop : block.stride;
  }
  set_tables(tables);
  encoder_ = add_blocks(config.encoder, parameters);
  decoder_ = add_blocks(config.decoder, parameters);
}

void CodecModel::set_tables(const TransformTables& tables) {
  if (tables.basis.shape() != Shape{config_.hop, config_.window} ||
      tables.scale.shape() != Shape{config_.hop}) {
    fail("codec_model", "a basis " + Shape{config_.hop, config_.window}.str() + " and as many scales",
         tables.basis.shape().str());
  }
  tables_ = tables;
  analysis_basis_ = transposed(tables.basis, {config_.window, 1, config_.hop});
  synthesis_basis_ = transposed(tables.basis, {config_.window, config_.hop, 1});
  inverse_scale_ = Tensor::zeros({config_.hop});
  for (int k = 0; k < config_.hop; ++k) inverse_scale_.f32()[k] = 1.0f / tables.scale.f32()[k];
}

std::vector<CodecModel::Block> CodecModel::add_blocks(const std::vector<TesseraBlock>& specs,
                                                      Parameters& parameters) {
  const auto add = [&](const std::string& name, int in, int out, int kernel, float variance) {
    Conv conv;
    conv.weight = parameters.add(name + ".weight", {kernel, in, out}, Init::fan_in(variance));
    conv.bias = parameters.add(name + ".bias", {out}, Init::zero());
    return conv;
  };
  std::vector<Block> blocks;
  for (const TesseraBlock& spec : specs) {
    Block block;
    block.spec = spec;
    if (spec.kind == Kind::conv || spec.kind == Kind::conv_transpose) {
      if (spec.stride > 1 && spec.dilation > 1)
        fail("codec_model", "stride 1 or dilation 1", "neither: " + spec.name);
      block.first = add(spec.name, spec.in, spec.out, spec.kernel, 1.0f);
    } else if (spec.kind == Kind::residual) {
      block.first = add(spec.name + ".conv1", spec.in, spec.out, spec.kernel, 1.0f);
      block.second = add(spec.name + ".conv2", spec.out, spec.out, 1, kBranchVariance);
    } else if (spec.kind == Kind::pitch_filter) {
      block.pitch_filter = std::make_shared<PitchFilter>(spec.pitch);
    } else if (spec.kind == Kind::spectral_smoother) {
      block.smoother = std::make_shared<SpectralSmoother>(spec.smoother);
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

Tensor CodecModel::analysis(Tape& tape, const Tensor& x) const {
  const Tape::InPrecision precise(tape, Precision::f32);
  const Tensor c = ops::conv1d(tape, x, analysis_basis_, {}, causal(config_.window, config_.hop, 1));
  return ops::mul_rows(tape, c, tables_.scale);
}

Tensor CodecModel::synthesis(Tape& tape, const Tensor& x) const {
  const Tape::InPrecision precise(tape, Precision::f32);
  return ops::conv_transpose1d(tape, ops::mul_rows(tape, x, inverse_scale_), synthesis_basis_, {},
                               config_.hop);
}

Tensor CodecModel::run(Tape& tape, const Block& block, Tensor x) const {
  const TesseraBlock& spec = block.spec;
  switch (spec.kind) {
    case Kind::transform:
      return ops::activate(tape, Activation::signed_sqrt, analysis(tape, x));
    case Kind::inverse_transform:
      return synthesis(tape, ops::activate(tape, Activation::signed_square, x));
    case Kind::analysis:
      return analysis(tape, x);
    case Kind::synthesis:
      return synthesis(tape, x);
    case Kind::split_gain:
      return ops::split_gain(tape, x, spec.bands);
    case Kind::join_gain:
      return ops::join_gain(tape, x, spec.bands);
    case Kind::conv:
      return ops::conv1d(tape, x, block.first.weight, block.first.bias,
                         causal(spec.kernel, spec.stride, spec.dilation));
    case Kind::conv_transpose:
      return ops::conv_transpose1d(tape, x, block.first.weight, block.first.bias, spec.stride);
    case Kind::residual: {
      const auto body = [&spec, first = block.first, second = block.second](Tape& t, const Tensor& in) {
        const Tensor a = ops::activate(t, Activation::elu, in);
        const Tensor b = ops::conv1d(t, a, first.weight, first.bias,
                                     causal(spec.kernel, 1, spec.dilation, Activation::elu));
        return ops::add(t, ops::conv1d(t, b, second.weight, second.bias), in);
      };
      return recompute_ ? recompute(tape, x, body) : body(tape, x);
    }
    case Kind::pitch_filter:
      return ops::pitch_filter(tape, x, block.pitch_filter);
    case Kind::spectral_smoother:
      return ops::spectral_smoother(tape, x, block.smoother);
  }
  return x;
}

Tensor CodecModel::encode(Tape& tape, const Tensor& pcm) const {
  if (pcm.shape().rank() != 2 || pcm.dim(1) % samples_per_frame_) {
    fail("encode", "pcm [B, a multiple of " + std::to_string(samples_per_frame_) + "]", pcm.shape().str());
  }
  Tensor x = ops::reshape(tape, pcm, {pcm.dim(0), pcm.dim(1), 1});
  for (const Block& block : encoder_) x = run(tape, block, x);
  return x;
}

Tensor CodecModel::front(Tape& tape, const Tensor& pcm) const {
  Tensor x = ops::reshape(tape, pcm, {pcm.dim(0), pcm.dim(1), 1});
  for (const Block& block : encoder_) {
    if (block.first.weight.defined()) break;
    x = run(tape, block, x);
  }
  return x;
}

Tensor CodecModel::coefficients(Tape& tape, const Tensor& pcm) const {
  return analysis(tape, ops::reshape(tape, pcm, {pcm.dim(0), pcm.dim(1), 1}));
}

Tensor CodecModel::decode(Tape& tape, const Tensor& latents) const {
  Tensor x = latents;
  for (const Block& block : decoder_) x = run(tape, block, x);
  return ops::reshape(tape, x, {x.dim(0), x.dim(1)});
}

}  // namespace tessera::train
