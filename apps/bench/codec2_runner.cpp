// The mode stands nowhere in such a file; whoever decodes it has to know it, as with `c2dec`.
#include "apps/bench/codec2_runner.h"

#include <codec2/codec2.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "apps/bench/file_runner.h"

namespace tessera::bench {
namespace {

constexpr int kRateHz = 8000;

struct Mode {
  std::string_view name;
  int number;
  double kbps;
};

constexpr std::array kModes{Mode{"3200", CODEC2_MODE_3200, 3.2}, Mode{"2400", CODEC2_MODE_2400, 2.4},
                            Mode{"1600", CODEC2_MODE_1600, 1.6}, Mode{"1400", CODEC2_MODE_1400, 1.4},
                            Mode{"1300", CODEC2_MODE_1300, 1.3}, Mode{"1200", CODEC2_MODE_1200, 1.2},
                            Mode{"700C", CODEC2_MODE_700C, 0.7}};

Result<Mode> mode_of(std::string_view name) {
  std::string names;
  for (const Mode& mode : kModes) {
    if (mode.name == name) return mode;
    names += (names.empty() ? "" : ", ") + std::string(mode.name);
  }
  return Error{ErrorCode::usage, "expected one of the modes " + names + ", got " + std::string(name)};
}

using Handle = std::unique_ptr<CODEC2, decltype(&codec2_destroy)>;

class Codec2Runner : public FileRunner {
 public:
  Codec2Runner(std::string name, std::vector<Mode> modes)
      : FileRunner(std::move(name)), modes_(std::move(modes)) {}

  std::string version() const override { return "libcodec2 " CODEC2_VERSION; }

  std::string recipe(const OperatingPoint& point) const override {
    return "c2enc " + point.setting + " IN8K.raw OUT.bit; c2dec " + point.setting +
           " OUT.bit DECODED8K.raw (16-bit samples without header)";
  }

  std::vector<OperatingPoint> points() const override {
    std::vector<OperatingPoint> points;
    for (const Mode& mode : modes_) {
      points.push_back({.name = "mode " + std::string(mode.name),
                        .nominal_kbps = mode.kbps,
                        .setting = std::string(mode.name)});
    }
    return points;
  }

  int coded_rate_hz(const OperatingPoint& /*point*/, int /*sample_rate_hz*/) const override {
    return kRateHz;
  }

  Result<CodedFile> encode(const OperatingPoint& point, std::span<const float> pcm,
                           int /*coded_rate_hz*/) const override {
    auto codec = open(point);
    if (!codec) return codec.error();
    const auto frame = static_cast<std::size_t>(codec2_samples_per_frame(codec->get()));
    const auto frame_bytes = static_cast<std::size_t>(codec2_bytes_per_frame(codec->get()));
    auto samples = to_pcm16(pcm);
    const std::size_t frames = (samples.size() + frame - 1) / frame;
    samples.resize(frames * frame);
    CodedFile file;
    file.bytes.resize(frames * frame_bytes);
    for (std::size_t i = 0; i < frames; ++i) {
      codec2_encode(codec->get(), reinterpret_cast<unsigned char*>(&file.bytes[i * frame_bytes]),
                    &samples[i * frame]);
    }
    const auto bits = static_cast<std::size_t>(codec2_bits_per_frame(codec->get()));
    file.payload_bytes = static_cast<std::int64_t>((frames * bits + 7) / 8);
    return file;
  }

  Result<DecodedFile> decode(const OperatingPoint& point, std::span<const std::byte> file,
                             int /*coded_rate_hz*/, LossTrace* /*loss*/) const override {
    auto codec = open(point);
    if (!codec) return codec.error();
    const auto frame_bytes = static_cast<std::size_t>(codec2_bytes_per_frame(codec->get()));
    std::vector<std::int16_t> block(static_cast<std::size_t>(codec2_samples_per_frame(codec->get())));
    DecodedFile decoded;
    decoded.sample_rate_hz = kRateHz;
    const std::lock_guard lock(random_sequence_);
    for (std::size_t at = 0; at + frame_bytes <= file.size(); at += frame_bytes) {
      codec2_decode(codec->get(), block.data(), reinterpret_cast<const unsigned char*>(&file[at]));
      append_pcm16(block, decoded.pcm);
      ++decoded.packets;
    }
    return decoded;
  }

 private:
  static Result<Handle> open(const OperatingPoint& point) {
    const auto mode = mode_of(point.setting);
    if (!mode) return mode.error();
    Handle codec(codec2_create(mode->number), codec2_destroy);
    if (!codec) return Error{ErrorCode::unsupported, "this libcodec2 was built without " + point.name};
    return codec;
  }

  std::vector<Mode> modes_;
  mutable std::mutex random_sequence_;  // the library's own, which it does not guard
};

}  // namespace

Result<std::unique_ptr<CodecRunner>> make_codec2_runner(const Codec2Options& options) {
  std::vector<Mode> modes;
  for (const std::string& name : options.modes) {
    const auto mode = mode_of(name);
    if (!mode) return Error{mode.error().code, "codec2: " + mode.error().message};
    modes.push_back(*mode);
  }
  return std::unique_ptr<CodecRunner>(
      std::make_unique<Codec2Runner>(options.name.empty() ? "codec2" : options.name, std::move(modes)));
}

std::string codec2_absence() {
  return "";
}

}  // namespace tessera::bench
