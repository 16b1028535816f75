#include "codec/mimi_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

namespace tessera {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

// transformers -> kyutai, for what stands inside a name.
constexpr std::array kParts = {
    Pair{"encoder_transformer.layers.", "encoder_transformer.transformer.layers."},
    Pair{"decoder_transformer.layers.", "decoder_transformer.transformer.layers."},
    Pair{"self_attn.o_proj", "self_attn.out_proj"},
    Pair{"input_layernorm", "norm1"},
    Pair{"post_attention_layernorm", "norm2"},
    Pair{"mlp.fc1", "linear1"},
    Pair{"mlp.fc2", "linear2"},
    Pair{"self_attn_layer_scale", "layer_scale_1"},
    Pair{"mlp_layer_scale", "layer_scale_2"},
    Pair{"semantic_residual_vector_quantizer.layers.", "rvq_first.vq.layers."},
    Pair{"acoustic_residual_vector_quantizer.layers.", "rvq_rest.vq.layers."},
    Pair{"semantic_residual_vector_quantizer", "rvq_first"},
    Pair{"acoustic_residual_vector_quantizer", "rvq_rest"},
    Pair{".codebook.", "._codebook."},
    Pair{"embed_sum", "embedding_sum"},
    Pair{"downsample.conv.", "downsample.conv.conv.conv."},
    Pair{"upsample.conv.", "upsample.convtr.convtr.convtr."},
};

void replace(std::string& text, std::string_view from, std::string_view to) {
  if (const std::size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
}

// encoder.layers.N.conv and .block.I.conv; the decoder's layers 2, 5, 8, 11 are transposed.
std::string seanet_name(std::string name) {
  const std::size_t number = name.find(".layers.") + 8;
  const int layer = std::stoi(name.substr(number));
  const bool transposed =
      name.starts_with("decoder.") && layer > 0 && layer < 14 && name.find(".block.") == std::string::npos;
  replace(name, ".layers.", ".model.");
  replace(name, ".conv.", transposed ? ".convtr.convtr." : ".conv.conv.");
  return name;
}

}  // namespace

bool has_kyutai_names(const SafeTensors& file) {
  return file.find("quantizer.rvq_first.input_proj.weight").has_value();
}

std::string kyutai_name(const std::string& name) {
  if (name.starts_with("encoder.layers.") || name.starts_with("decoder.layers.")) return seanet_name(name);
  std::string result = name;
  for (const auto& [from, to] : kParts) replace(result, from, to);
  return result;
}

Weight mimi_projection(Weights& weights, const std::string& prefix, char which, int channels, int heads) {
  const std::string joined = prefix + "in_proj_weight";
  if (!weights.has(joined)) return weights.get(prefix + which + "_proj.weight", {channels, channels});
  const Weight all = weights.get(joined, {3 * channels, channels});
  const std::size_t row = static_cast<std::size_t>(channels);
  const int first = (which == 'q' ? 0 : which == 'k' ? 1 : 2) * channels, dim = channels / heads;
  Weight result{std::vector<float>(row * row), all.bf16};
  for (int to = 0; to < channels; ++to) {
    const int head = to / dim, half = to % dim / (dim / 2), pair = to % dim % (dim / 2);
    const int from = first + (which == 'v' ? to : head * dim + 2 * pair + half);
    std::copy_n(all.values.begin() + static_cast<std::ptrdiff_t>(from) * channels, channels,
                result.values.begin() + static_cast<std::ptrdiff_t>(to) * channels);
  }
  return result;
}

}  // namespace tessera
