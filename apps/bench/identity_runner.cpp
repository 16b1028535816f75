// The header is that of the media writer, so the bytes are those of a file that `tessera decode` would write.
#include "apps/bench/identity_runner.h"

#include <cstdint>

#include "apps/bench/file_runner.h"
#include "apps/bench/sound_files.h"

namespace tessera::bench {
namespace {

class IdentityRunner : public FileRunner {
 public:
  using FileRunner::FileRunner;

  std::string version() const override { return "1"; }
  std::string recipe(const OperatingPoint& /*point*/) const override {
    return "the recording itself as a 16-bit WAV file";
  }
  std::vector<OperatingPoint> points() const override {
    return {{.name = "16-bit PCM", .nominal_kbps = 256, .setting = ""}};
  }
  int coded_rate_hz(const OperatingPoint& /*point*/, int sample_rate_hz) const override {
    return sample_rate_hz;
  }

  Result<CodedFile> encode(const OperatingPoint& /*point*/, std::span<const float> pcm,
                           int coded_rate_hz) const override {
    CodedFile file;
    file.bytes = wav_bytes(pcm, coded_rate_hz);
    file.payload_bytes = static_cast<std::int64_t>(2 * pcm.size());
    return file;
  }

  Result<DecodedFile> decode(const OperatingPoint& /*point*/, std::span<const std::byte> file,
                             int coded_rate_hz, LossTrace* /*loss*/) const override {
    const auto data = file.subspan(wav_header_bytes());
    std::vector<std::int16_t> values;
    for (std::size_t i = 0; i + 1 < data.size(); i += 2) {
      const int bits = std::to_integer<int>(data[i]) | std::to_integer<int>(data[i + 1]) << 8;
      values.push_back(static_cast<std::int16_t>(bits));
    }
    DecodedFile decoded;
    decoded.sample_rate_hz = coded_rate_hz;
    append_pcm16(values, decoded.pcm);
    return decoded;
  }
};

}  // namespace

std::unique_ptr<CodecRunner> make_identity_runner(const std::string& name) {
  return std::make_unique<IdentityRunner>(name);
}

}  // namespace tessera::bench
