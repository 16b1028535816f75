// Time is that of the monotonic clock around encode() and decode(), resampling included: a codec that needs
// it pays for it.
#include "apps/bench/file_runner.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

#include "codec/media/resampler.h"

namespace tessera::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Result<CodedSound> FileRunner::run(const OperatingPoint& point, std::span<const float> pcm,
                                   int sample_rate_hz, const LossOptions& loss) const {
  const auto named = [this](const Error& error) { return Error{error.code, name_ + ": " + error.message}; };
  if (pcm.empty()) return named({ErrorCode::usage, "expected a recording with samples, got an empty one"});
  auto trace = LossTrace::create(loss);
  if (!trace) return named(trace.error());
  const bool lossy = loss.rate > 0;
  if (lossy && !conceals()) {
    return named({ErrorCode::unsupported, "loss of packets cannot be simulated with this codec"});
  }

  const int rate_hz = coded_rate_hz(point, sample_rate_hz);
  const auto encode_start = Clock::now();
  auto input = resampled(pcm, sample_rate_hz, rate_hz);
  if (!input) return named(input.error());
  auto file = encode(point, *input, rate_hz);
  if (!file) return named(file.error());
  CodedSound sound;
  sound.encode_s = file->seconds >= 0 ? file->seconds : seconds_since(encode_start);

  const auto decode_start = Clock::now();
  auto decoded = decode(point, file->bytes, rate_hz, lossy ? &*trace : nullptr);
  if (!decoded) return named(decoded.error());
  auto output = resampled(decoded->pcm, decoded->sample_rate_hz, sample_rate_hz);
  if (!output) return named(output.error());
  sound.decode_s = decoded->seconds >= 0 ? decoded->seconds : seconds_since(decode_start);

  sound.pcm = *std::move(output);
  sound.sample_rate_hz = sample_rate_hz;
  sound.file_bytes = static_cast<std::int64_t>(file->bytes.size());
  sound.payload_bytes = file->payload_bytes;
  sound.packets = decoded->packets;
  sound.lost = decoded->lost;
  return sound;
}

int nearest_rate(std::span<const int> rates, int rate_hz) {
  const auto at = std::lower_bound(rates.begin(), rates.end(), rate_hz);
  return at == rates.end() ? rates.back() : *at;
}

Result<std::vector<float>> resampled(std::span<const float> pcm, int from_hz, int to_hz) {
  if (from_hz == to_hz) return std::vector<float>(pcm.begin(), pcm.end());
  auto resampler = Resampler::create(from_hz, to_hz, 1);
  if (!resampler) return resampler.error();
  std::vector<float> out;
  if (auto pushed = resampler->push(pcm, out); !pushed) return pushed.error();
  if (auto flushed = resampler->flush(out); !flushed) return flushed.error();
  return out;
}

std::vector<std::int16_t> to_pcm16(std::span<const float> pcm) {
  std::vector<std::int16_t> out(pcm.size());
  std::transform(pcm.begin(), pcm.end(), out.begin(), [](float x) {
    const float scaled = std::isnan(x) ? 0.0f : std::clamp(x * 32768.0f, -32768.0f, 32767.0f);
    return static_cast<std::int16_t>(std::lrint(scaled));
  });
  return out;
}

void append_pcm16(std::span<const std::int16_t> values, std::vector<float>& out) {
  for (const std::int16_t value : values) out.push_back(static_cast<float>(value) / 32768.0f);
}

std::string plain_number(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  return end.ec == std::errc() ? std::string(text.data(), end.ptr) : std::to_string(value);
}

}  // namespace tessera::bench
