// SEANet, the convolutional encoder and decoder of SoundStream, EnCodec and Mimi: a convolution at the sample
// rate, a residual block and a strided (or transposed) convolution per ratio, a convolution to the latent.
// Tensor names are those of the transformers layout: layers.N.conv, layers.N.block.{1,3}.conv,
// layers.N.shortcut.conv, layers.N.lstm.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codec/weights.h"
#include "core/conv1d.h"
#include "core/sequential.h"

namespace tessera {

struct SeanetOptions {
  int filters = 64;         ///< channels at the sample rate
  int dimension = 512;      ///< channels of the latent
  std::vector<int> ratios;  ///< upsampling factors, decoder's order; the encoder uses them in reverse
  int kernel = 7;
  int last_kernel = 3;
  int residual_kernel = 3;
  int compress = 2;  ///< residual blocks narrow by this factor inside
  int lstm_layers = 0;
  bool conv_shortcut = false;
  PadMode pad = PadMode::zero;
};

/// Samples per latent: the product of the ratios. Throws ResultError (format) for ratios that no codec has.
int seanet_hop(const SeanetOptions& options);
/// [samples, 1] -> [samples / product of ratios, dimension]. Throws as Weights does.
std::unique_ptr<Sequential> seanet_encoder(const SeanetOptions& options, const std::string& prefix,
                                           Weights& weights);
/// [frames, dimension] -> [frames * product of ratios, 1].
std::unique_ptr<Sequential> seanet_decoder(const SeanetOptions& options, const std::string& prefix,
                                           Weights& weights);

}  // namespace tessera
