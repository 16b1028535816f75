// A rate for every number of codebooks goes into JSON; a person sees the ends and powers of two.
#include "apps/describe.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/rate.h"
#include "core/hash.h"

namespace tessera::app {

std::string table(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  std::string text;
  for (const auto& [name, value] : rows) {
    text += (text.empty() ? "" : "\n") + name + std::string(width + 2 - name.size(), ' ') + value;
  }
  return text;
}

Json codec_json(const CodecInfo& info) {
  Json rates = Json::array();
  for (int count = 1; count <= info.codebooks; ++count) {
    rates.push_back({{"codebooks", count}, {"kbps", file_kbps(info, count, 1, std::nullopt)}});
  }
  return {{"name", info.name},
          {"family", info.family},
          {"weights_hash", hex(info.weights_hash)},
          {"parameters", info.parameters},
          {"sample_rate_hz", info.sample_rate_hz},
          {"samples_per_frame", info.samples_per_frame},
          {"frame_rate_hz", info.frame_rate_hz()},
          {"codebooks", info.codebooks},
          {"codebook_sizes", info.codebook_sizes},
          {"pre_skip", info.pre_skip},
          {"latency_samples", info.latency_samples},
          {"rates", rates}};
}

std::string codec_text(const CodecInfo& info) {
  std::string rates;
  for (int count = 1; count <= info.codebooks;
       count = count == info.codebooks ? count + 1 : std::min(2 * count, info.codebooks)) {
    rates += (rates.empty() ? "" : ", ") + fixed(file_kbps(info, count, 1, std::nullopt), 2) + " (" +
             std::to_string(count) + ")";
  }
  const auto [least, most] = std::minmax_element(info.codebook_sizes.begin(), info.codebook_sizes.end());
  const std::string sizes = std::to_string(*least) + (*least == *most ? "" : " to " + std::to_string(*most));
  const double latency_ms = 1000.0 * info.latency_samples / info.sample_rate_hz;
  return table({{"model", info.name},
                {"family", info.family},
                {"weights", hex(info.weights_hash) + ", " +
                                fixed(static_cast<double>(info.parameters) / 1e6, 2) + " million parameters"},
                {"sound", std::to_string(info.sample_rate_hz) + " Hz, one stream per channel"},
                {"frames", fixed(info.frame_rate_hz(), 2) + " a second, " +
                               std::to_string(info.samples_per_frame) + " samples each"},
                {"tokens", std::to_string(info.codebooks) + " codebooks of " + sizes},
                {"latency", fixed(latency_ms, 1) + " ms algorithmic"},
                {"kbps (codebooks)", rates + ": a minute's file, one channel, packed"}});
}

}  // namespace tessera::app
