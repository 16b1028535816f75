// Settings are those of `speexenc -w --quality Q --comp 10`. The delays of encoder and decoder, which the
// library states and no setting changes, are dropped at the start of the decoded sound; the last granule
// position ends it.
#include "apps/bench/speex_runner.h"

#include <speex/speex.h>
#include <speex/speex_header.h>

#include <algorithm>
#include <array>
#include <utility>

#include "apps/bench/file_runner.h"
#include "apps/bench/ogg_file.h"

namespace tessera::bench {
namespace {

constexpr int kRateHz = 16000;
constexpr std::size_t kHeaders = 2;
constexpr std::size_t kPacketsPerPage = 50;

const SpeexMode* wideband() {
  return speex_lib_get_mode(SPEEX_MODEID_WB);
}

std::string library_version() {
  const char* text = nullptr;
  speex_lib_ctl(SPEEX_LIB_GET_VERSION_STRING, static_cast<void*>(&text));
  return text ? text : "unknown version";
}

/// The bits of a frame, or those read from a packet.
class Bits {
 public:
  Bits() { speex_bits_init(&bits_); }
  ~Bits() { speex_bits_destroy(&bits_); }
  Bits(const Bits&) = delete;
  Bits& operator=(const Bits&) = delete;
  SpeexBits* get() { return &bits_; }

 private:
  SpeexBits bits_ = {};
};

using State = std::unique_ptr<void, void (*)(void*)>;

State encoder_state(int quality) {
  State encoder(speex_encoder_init(wideband()), speex_encoder_destroy);
  int rate_hz = kRateHz, complexity = 10;
  speex_encoder_ctl(encoder.get(), SPEEX_SET_SAMPLING_RATE, &rate_hz);
  speex_encoder_ctl(encoder.get(), SPEEX_SET_COMPLEXITY, &complexity);
  speex_encoder_ctl(encoder.get(), SPEEX_SET_QUALITY, &quality);
  return encoder;
}

/// A number that an encoder or a decoder tells about itself.
int asked(const State& state, int request, int (*control)(void*, int, void*) = speex_encoder_ctl) {
  int value = 0;
  control(state.get(), request, &value);
  return value;
}

State decoder_state() {
  State decoder(speex_decoder_init(wideband()), speex_decoder_destroy);
  int rate_hz = kRateHz, enhance = 1;
  speex_decoder_ctl(decoder.get(), SPEEX_SET_SAMPLING_RATE, &rate_hz);
  speex_decoder_ctl(decoder.get(), SPEEX_SET_ENH, &enhance);
  return decoder;
}

int decoder_delay(const State& decoder) {
  return asked(decoder, SPEEX_GET_LOOKAHEAD, speex_decoder_ctl);
}

std::vector<std::byte> header_packet() {
  SpeexHeader header;
  speex_init_header(&header, kRateHz, 1, wideband());
  header.frames_per_packet = 1;
  int size = 0;
  const std::unique_ptr<char, void (*)(void*)> packet(speex_header_to_packet(&header, &size),
                                                      speex_header_free);
  const auto bytes = std::as_bytes(std::span(packet.get(), static_cast<std::size_t>(size)));
  return {bytes.begin(), bytes.end()};
}

/// Who wrote it, and no comments.
std::vector<std::byte> comment_packet() {
  const std::string vendor = library_version();
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < 4; ++i) out.push_back(static_cast<std::byte>(vendor.size() >> (8 * i) & 0xff));
  for (const char c : vendor) out.push_back(static_cast<std::byte>(c));
  out.insert(out.end(), 4, std::byte{0});
  return out;
}

class SpeexRunner : public FileRunner {
 public:
  SpeexRunner(std::string name, std::vector<int> qualities)
      : FileRunner(std::move(name)), qualities_(std::move(qualities)) {}

  std::string version() const override { return "libspeex " + library_version(); }

  std::string recipe(const OperatingPoint& point) const override {
    return "speexenc -w --quality " + point.setting +
           " --comp 10 IN16K.wav OUT.spx; speexdec OUT.spx DECODED.wav (Ogg Speex, an empty comment header)";
  }

  std::vector<OperatingPoint> points() const override {
    std::vector<OperatingPoint> points;
    for (const int quality : qualities_) {
      const std::string number = std::to_string(quality);
      points.push_back({.name = "quality " + number,
                        .nominal_kbps = asked(encoder_state(quality), SPEEX_GET_BITRATE) / 1000.0,
                        .setting = number});
    }
    return points;
  }

  bool conceals() const override { return true; }
  int coded_rate_hz(const OperatingPoint& /*point*/, int /*sample_rate_hz*/) const override {
    return kRateHz;
  }

  Result<CodedFile> encode(const OperatingPoint& point, std::span<const float> pcm,
                           int /*rate_hz*/) const override {
    const auto quality = std::find_if(qualities_.begin(), qualities_.end(),
                                      [&point](int q) { return std::to_string(q) == point.setting; });
    if (quality == qualities_.end()) {
      return Error{ErrorCode::usage, "expected one of its own operating points, got " + point.name};
    }
    const State encoder = encoder_state(*quality);
    const auto frame = static_cast<std::size_t>(asked(encoder, SPEEX_GET_FRAME_SIZE));
    const int delay = asked(encoder, SPEEX_GET_LOOKAHEAD);
    std::vector<OggPacket> packets;
    packets.push_back({.bytes = header_packet()});
    packets.push_back({.bytes = comment_packet()});

    Bits bits;
    std::vector<float> block(frame);
    std::vector<char> bytes;
    const std::size_t needed = pcm.size() + static_cast<std::size_t>(delay + decoder_delay(decoder_state()));
    for (std::size_t at = 0; at < needed; at += frame) {
      const std::size_t from = std::min(at, pcm.size());
      const auto some = pcm.subspan(from, std::min(frame, pcm.size() - from));
      const auto end = std::transform(some.begin(), some.end(), block.begin(),
                                      [](float x) { return std::clamp(x * 32768.0f, -32768.0f, 32767.0f); });
      std::fill(end, block.end(), 0.0f);
      speex_bits_reset(bits.get());
      speex_encode(encoder.get(), block.data(), bits.get());
      bytes.resize(static_cast<std::size_t>(speex_bits_nbytes(bits.get())));
      const int size = speex_bits_write(bits.get(), bytes.data(), static_cast<int>(bytes.size()));
      const auto packet = std::as_bytes(std::span(bytes).first(static_cast<std::size_t>(size)));
      packets.push_back({.bytes = {packet.begin(), packet.end()},
                         .granule = static_cast<std::int64_t>(at + frame) - delay});
    }
    packets.back().granule = std::ssize(pcm);
    CodedFile file;
    file.bytes = write_ogg(packets, kHeaders, kPacketsPerPage);
    file.payload_bytes = payload_bytes(packets, kHeaders);
    return file;
  }

  Result<DecodedFile> decode(const OperatingPoint& point, std::span<const std::byte> file,
                             int /*coded_rate_hz*/, LossTrace* loss) const override {
    auto packets = read_ogg(file);
    if (!packets) return packets.error();
    if (packets->size() <= kHeaders)
      return Error{ErrorCode::format, "expected an Ogg Speex file, got no sound"};
    const State decoder = decoder_state();
    DecodedFile decoded;
    decoded.sample_rate_hz = kRateHz;
    Bits bits;
    std::vector<float> block(
        static_cast<std::size_t>(asked(decoder, SPEEX_GET_FRAME_SIZE, speex_decoder_ctl)));
    for (OggPacket& packet : std::span(*packets).subspan(kHeaders)) {
      const bool lost = loss && loss->next();
      if (!lost) {
        speex_bits_read_from(bits.get(), reinterpret_cast<char*>(packet.bytes.data()),
                             static_cast<int>(packet.bytes.size()));
      }
      if (speex_decode(decoder.get(), lost ? nullptr : bits.get(), block.data()) != 0) {
        return Error{ErrorCode::format, "decoding " + point.name + ": the stream is corrupt"};
      }
      for (const float value : block) decoded.pcm.push_back(std::clamp(value / 32768.0f, -1.0f, 1.0f));
      ++decoded.packets;
      decoded.lost += lost ? 1 : 0;
    }
    auto& pcm = decoded.pcm;
    const int delay = asked(encoder_state(0), SPEEX_GET_LOOKAHEAD) + decoder_delay(decoder);
    pcm.erase(pcm.begin(), pcm.begin() + std::min<std::ptrdiff_t>(delay, std::ssize(pcm)));
    pcm.resize(
        static_cast<std::size_t>(std::clamp<std::int64_t>(packets->back().granule, 0, std::ssize(pcm))));
    return decoded;
  }

 private:
  std::vector<int> qualities_;
};

}  // namespace

Result<std::unique_ptr<CodecRunner>> make_speex_runner(const SpeexOptions& options) {
  for (const int quality : options.qualities) {
    if (quality < 0 || quality > 10) {
      return Error{ErrorCode::usage, "speex: expected a quality of 0 to 10, got " + std::to_string(quality)};
    }
  }
  return std::unique_ptr<CodecRunner>(
      std::make_unique<SpeexRunner>(options.name.empty() ? "speex" : options.name, options.qualities));
}

std::string speex_absence() {
  return "";
}

}  // namespace tessera::bench
