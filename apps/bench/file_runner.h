// What all runners share: sound to the codec's rate, into the bytes of a file, out of these bytes again and
// back to the rate it came in, with the time that each way takes. A codec adds how it writes and reads its
// file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/bench/codec_runner.h"
#include "apps/bench/loss.h"
#include "core/result.h"

namespace tessera::bench {

/// A file as the codec writes it.
struct CodedFile {
  std::vector<std::byte> bytes = {};
  std::int64_t payload_bytes = -1;  ///< as CodedSound has it
  double seconds = -1;              ///< what making it took, where a clock around encode() would say too much
};

/// What a file decodes to.
struct DecodedFile {
  std::vector<float> pcm = {};
  int sample_rate_hz = 0;
  std::int64_t packets = 0, lost = 0;
  double seconds = -1;  ///< as CodedFile has it
};

class FileRunner : public CodecRunner {
 public:
  explicit FileRunner(std::string name) : name_(std::move(name)) {}

  std::string name() const final { return name_; }
  /// Times are those of encode() and decode() with the resampling around them, or what these say themselves.
  /// Errors: usage (no samples, loss options), unsupported (loss where the codec conceals none), the codec's
  /// own; each starts with the name.
  Result<CodedSound> run(const OperatingPoint& point, std::span<const float> pcm, int sample_rate_hz,
                         const LossOptions& loss) const final;

  /// The rate at which sound of `sample_rate_hz` is encoded.
  virtual int coded_rate_hz(const OperatingPoint& point, int sample_rate_hz) const = 0;
  /// `pcm` is at coded_rate_hz(), not empty.
  virtual Result<CodedFile> encode(const OperatingPoint& point, std::span<const float> pcm,
                                   int coded_rate_hz) const = 0;
  /// `loss` tells which packets are missing; null: none.
  virtual Result<DecodedFile> decode(const OperatingPoint& point, std::span<const std::byte> file,
                                     int coded_rate_hz, LossTrace* loss) const = 0;

 private:
  std::string name_;
};

/// The smallest of `rates` (ascending) at or above `rate_hz`, else the largest.
int nearest_rate(std::span<const int> rates, int rate_hz);
/// Mono sound at another rate.
Result<std::vector<float>> resampled(std::span<const float> pcm, int from_hz, int to_hz);

/// round(x * 32768), ties to even, limited to 16 bits; not a number: 0. As the media writer does it.
std::vector<std::int16_t> to_pcm16(std::span<const float> pcm);
/// value / 32768, appended.
void append_pcm16(std::span<const std::int16_t> values, std::vector<float>& out);

/// A number with as few digits as tell it: "6", "8.85".
std::string plain_number(double value);

}  // namespace tessera::bench
