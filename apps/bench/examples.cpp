#include "apps/bench/examples.h"

#include <filesystem>
#include <vector>

#include "codec/media.h"
#include "core/hash.h"

namespace tessera::bench {
namespace {

// Letters, digits and a few signs: safe in file names and in addresses.
std::string plain(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '.' || c == '_';
    result += safe ? c : '_';
  }
  return result.substr(0, 80);
}

}  // namespace

std::string example_path(const Example& example, const std::string& key) {
  const std::string stem = std::filesystem::path(example.recording).stem().string();
  std::string name = plain(example.set) + "__" + plain(stem) + "__";
  name += example.codec.empty() ? "recording" : plain(example.codec) + "__" + plain(example.point);
  const std::string all = example.set + "\n" + example.recording + "\n" + key;
  return "examples/" + name + "__" + hex(content_hash(std::as_bytes(std::span(all)))).substr(0, 8) + ".wav";
}

Result<void> write_example(const std::string& path, std::span<const float> pcm, int sample_rate_hz,
                           std::int64_t delay_samples, std::size_t samples) {
  std::vector<float> aligned(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    const std::int64_t from = static_cast<std::int64_t>(i) + delay_samples;
    if (from >= 0 && from < static_cast<std::int64_t>(pcm.size())) {
      aligned[i] = pcm[static_cast<std::size_t>(from)];
    }
  }
  WriteOptions options;
  options.sample_rate_hz = sample_rate_hz;
  options.channels = 1;
  auto writer = AudioWriter::create(path, options);
  if (!writer) return writer.error();
  if (const auto written = writer->write(aligned); !written) return written;
  return writer->finish();
}

}  // namespace tessera::bench
