#include "codec/tessera_config.h"

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/gain.h"
#include "core/result.h"
#include "quantizers/path_search.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;
using Kind = TesseraBlock::Kind;

constexpr int kVersion = 2;
constexpr int kMaxExtent = 1 << 16;  // of anything in a configuration

[[noreturn]] void refuse(const std::string& message) {
  throw ResultError({ErrorCode::format, "configuration: " + message});
}

// Reads fields of the configuration; whatever is not as expected is refused.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  int integer(const char* key, int lowest = 1) const {
    const auto found = json_.find(key);
    if (found != json_.end() && found->is_number_integer()) {
      const auto value = found->get<std::int64_t>();
      if (value >= lowest && value <= kMaxExtent) return static_cast<int>(value);
    }
    bad(key, "an integer from " + std::to_string(lowest) + " to " + std::to_string(kMaxExtent));
  }
  /// The same, `otherwise` if there is no such key.
  int integer_or(const char* key, int otherwise) const {
    return json_.is_object() && json_.contains(key) ? integer(key) : otherwise;
  }
  float number(const char* key, int lowest, int highest) const {
    const auto found = json_.find(key);
    if (found != json_.end() && found->is_number()) {
      const auto value = found->get<double>();
      if (value >= lowest && value <= highest) return static_cast<float>(value);
    }
    bad(key, "a number from " + std::to_string(lowest) + " to " + std::to_string(highest));
  }
  std::string text(const char* key) const {
    const auto found = json_.find(key);
    if (found != json_.end() && found->is_string()) return found->get<std::string>();
    bad(key, "a string");
  }
  /// A list of at least one, together at most kMaxExtent.
  std::vector<int> integers(const char* key) const {
    std::vector<int> values;
    std::int64_t sum = 0;
    for (const Json& value : list(key)) {
      const std::int64_t number = value.is_number_integer() ? value.get<std::int64_t>() : 0;
      sum += number < 1 || number > kMaxExtent ? kMaxExtent + 1 : number;
      if (sum > kMaxExtent) break;
      values.push_back(static_cast<int>(number));
    }
    if (sum < 1 || sum > kMaxExtent)
      bad(key, "positive integers, together at most " + std::to_string(kMaxExtent));
    return values;
  }
  const Json& list(const char* key) const {
    const auto found = json_.find(key);
    if (found != json_.end() && found->is_array()) return *found;
    bad(key, "a list");
  }

 private:
  [[noreturn]] void bad(const char* key, const std::string& expected) const {
    refuse("expected " + expected + " under \"" + key + "\", got " +
           (json_.is_object() && json_.contains(key) ? json_[key].dump() : "nothing"));
  }

  const Json& json_;
};

// The blocks by the name that a configuration calls them.
struct KindName {
  Kind kind;
  const char* name;
};
constexpr std::array kKinds = {KindName{Kind::transform, "transform"},
                               KindName{Kind::inverse_transform, "inverse_transform"},
                               KindName{Kind::analysis, "analysis"},
                               KindName{Kind::synthesis, "synthesis"},
                               KindName{Kind::split_gain, "split_gain"},
                               KindName{Kind::join_gain, "join_gain"},
                               KindName{Kind::conv, "conv"},
                               KindName{Kind::conv_transpose, "conv_transpose"},
                               KindName{Kind::residual, "residual"},
                               KindName{Kind::pitch_filter, "pitch_filter"},
                               KindName{Kind::spectral_smoother, "spectral_smoother"}};

Kind kind_of(const std::string& name) {
  std::string all;
  for (const KindName& kind : kKinds) {
    if (name == kind.name) return kind.kind;
    all += (all.empty() ? "" : ", ") + std::string(kind.name);
  }
  refuse("expected a block of " + all + ", got \"" + name + "\"");
}

PitchFilterOptions read_pitch_filter(const Fields& fields) {
  PitchFilterOptions options;
  options.hop = fields.integer("hop");
  options.shortest = fields.integer("shortest", 2);
  options.longest = fields.integer("longest", options.shortest + 1);
  options.before = fields.integer("before", 0);
  options.after = fields.integer("after", 0);
  options.smoothing = fields.integer("smoothing");
  options.strength = fields.number("strength", 0, 4);
  return options;
}

SpectralSmootherOptions read_spectral_smoother(const Fields& fields) {
  SpectralSmootherOptions options;
  options.hop = fields.integer("hop");
  options.bins = fields.integer("bins");
  options.before = fields.integer("before", 0);
  options.after = fields.integer("after", 0);
  return options;
}

TesseraBlock read_block(const Json& json, int hop) {
  const Fields fields(json);
  TesseraBlock block;
  block.kind = kind_of(fields.text("block"));
  switch (block.kind) {
    case Kind::transform:
    case Kind::analysis:
      block.out = hop;
      break;
    case Kind::inverse_transform:
    case Kind::synthesis:
      block.in = hop;
      break;
    case Kind::split_gain:
      block.bands = fields.integers("bands");
      block.in = channels_of(block.bands);
      block.out = block.in + static_cast<int>(block.bands.size());
      break;
    case Kind::join_gain:
      block.bands = fields.integers("bands");
      block.out = channels_of(block.bands);
      block.in = block.out + static_cast<int>(block.bands.size());
      break;
    case Kind::conv:
    case Kind::conv_transpose:
      block.name = fields.text("name");
      block.in = fields.integer("in");
      block.out = fields.integer("out");
      block.kernel = fields.integer("kernel");
      block.stride = fields.integer_or("stride", 1);
      if (block.kind == Kind::conv) block.dilation = fields.integer("dilation");
      if (block.stride > block.kernel) {
        refuse("expected a stride of at most the kernel " + std::to_string(block.kernel) + ", got " +
               std::to_string(block.stride));
      }
      break;
    case Kind::residual:
      block.name = fields.text("name");
      block.in = block.out = fields.integer("channels");
      block.kernel = fields.integer("kernel");
      block.dilation = fields.integer("dilation");
      break;
    case Kind::pitch_filter:
      block.pitch = read_pitch_filter(fields);
      break;
    case Kind::spectral_smoother:
      block.smoother = read_spectral_smoother(fields);
      break;
  }
  return block;
}

std::vector<TesseraBlock> read_blocks(const Json& list, int hop) {
  std::vector<TesseraBlock> blocks;
  for (const Json& json : list) blocks.push_back(read_block(json, hop));
  return blocks;
}

Json block_json(const TesseraBlock& block) {
  Json json;
  for (const KindName& kind : kKinds) {
    if (kind.kind == block.kind) json["block"] = kind.name;
  }
  switch (block.kind) {
    case Kind::transform:
    case Kind::inverse_transform:
    case Kind::analysis:
    case Kind::synthesis:
      break;
    case Kind::split_gain:
    case Kind::join_gain:
      json["bands"] = block.bands;
      break;
    case Kind::conv:
    case Kind::conv_transpose:
      json.update({{"name", block.name}, {"in", block.in}, {"out", block.out}, {"kernel", block.kernel}});
      if (block.stride != 1) json["stride"] = block.stride;
      if (block.kind == Kind::conv) json["dilation"] = block.dilation;
      break;
    case Kind::residual:
      json.update({{"name", block.name}, {"channels", block.in}, {"kernel", block.kernel}});
      json["dilation"] = block.dilation;
      break;
    case Kind::pitch_filter:
      json.update({{"hop", block.pitch.hop},
                   {"shortest", block.pitch.shortest},
                   {"longest", block.pitch.longest},
                   {"before", block.pitch.before},
                   {"after", block.pitch.after},
                   {"smoothing", block.pitch.smoothing},
                   {"strength", block.pitch.strength}});
      break;
    case Kind::spectral_smoother:
      json.update({{"hop", block.smoother.hop},
                   {"bins", block.smoother.bins},
                   {"before", block.smoother.before},
                   {"after", block.smoother.after}});
      break;
  }
  return json;
}

Json blocks_json(const std::vector<TesseraBlock>& blocks) {
  Json list = Json::array();
  for (const TesseraBlock& block : blocks) list.push_back(block_json(block));
  return list;
}

}  // namespace

TesseraConfig parse_tessera_config(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) refuse("expected a JSON object under \"config\"");
  const Fields fields(json);
  if (const int version = fields.integer("version"); version != kVersion) {
    throw ResultError({ErrorCode::unsupported, "configuration: expected version " + std::to_string(kVersion) +
                                                   ", got " + std::to_string(version)});
  }
  TesseraConfig config;
  config.sample_rate_hz = fields.integer("sample_rate_hz");
  config.hop = fields.integer("hop");
  config.window = fields.integer("window");
  if (config.window % config.hop) {
    refuse("expected a window that is a multiple of the hop " + std::to_string(config.hop) + ", got " +
           std::to_string(config.window));
  }
  config.pre_skip = fields.integer("pre_skip", 0);
  config.latent = fields.integer("latent");
  config.codebooks = fields.integer("codebooks");
  config.codebook_size = fields.integer("codebook_size");
  config.code_dimension = fields.integer_or("code_dimension", 0);
  config.search_paths = fields.integer_or("search_paths", 1);
  if (config.search_paths > kMaxSearchPaths) {
    refuse("expected at most " + std::to_string(kMaxSearchPaths) + " search paths, got " +
           std::to_string(config.search_paths));
  }
  if (config.search_paths > 1 && config.code_dimension > 0) {
    refuse("expected \"search_paths\" of a plain residual quantizer only, got it beside \"code_dimension\"");
  }
  config.encoder = read_blocks(fields.list("encoder"), config.hop);
  config.decoder = read_blocks(fields.list("decoder"), config.hop);
  return config;
}

std::string to_json(const TesseraConfig& config) {
  Json json = {
      {"family", "tessera"},     {"version", kVersion},           {"sample_rate_hz", config.sample_rate_hz},
      {"hop", config.hop},       {"window", config.window},       {"pre_skip", config.pre_skip},
      {"latent", config.latent}, {"codebooks", config.codebooks}, {"codebook_size", config.codebook_size}};
  if (config.code_dimension > 0) json["code_dimension"] = config.code_dimension;
  if (config.search_paths > 1) json["search_paths"] = config.search_paths;
  json["encoder"] = blocks_json(config.encoder);
  json["decoder"] = blocks_json(config.decoder);
  return json.dump();
}

}  // namespace tessera
