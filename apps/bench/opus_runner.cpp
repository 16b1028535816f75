// The encoder's settings are those of `opusenc --vbr`: variable bitrate without constraint, everything else
// as the library has it, the application apart. Files are minimal: an empty comment header, pages of a
// second.
#include "apps/bench/opus_runner.h"

#include <opus/opus.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "apps/bench/file_runner.h"
#include "apps/bench/ogg_file.h"

namespace tessera::bench {
namespace {

constexpr int kClockHz = 48000;  // of granule positions and the pre-skip
constexpr std::array kRates{8000, 12000, 16000, 24000, 48000};
constexpr int kPacketsPerSecond = 50;
constexpr std::size_t kHeaders = 2;
constexpr std::size_t kMaxPacket = 1276;  // 1275 bytes of a frame and its table of contents
constexpr std::size_t kHeadBytes = 19;

using EncoderHandle = std::unique_ptr<OpusEncoder, decltype(&opus_encoder_destroy)>;
using DecoderHandle = std::unique_ptr<OpusDecoder, decltype(&opus_decoder_destroy)>;

Error opus_error(const std::string& what, int code) {
  return {ErrorCode::format, what + ": " + opus_strerror(code)};
}

void put(std::vector<std::byte>& out, std::string_view text) {
  for (const char c : text) out.push_back(static_cast<std::byte>(c));
}

void put(std::vector<std::byte>& out, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
}

std::uint32_t get(std::span<const std::byte> bytes, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = count; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return value;
}

std::vector<std::byte> head_packet(int pre_skip, int rate_hz) {
  std::vector<std::byte> out;
  put(out, "OpusHead");
  put(out, 1, 1);  // version
  put(out, 1, 1);  // channels
  put(out, static_cast<std::uint32_t>(pre_skip), 2);
  put(out, static_cast<std::uint32_t>(rate_hz), 4);
  put(out, 0, 2);  // output gain
  put(out, 0, 1);  // channel mapping family
  return out;
}

std::vector<std::byte> tags_packet() {
  const std::string_view vendor = opus_get_version_string();
  std::vector<std::byte> out;
  put(out, "OpusTags");
  put(out, static_cast<std::uint32_t>(vendor.size()), 4);
  put(out, vendor);
  put(out, 0, 4);  // comments
  return out;
}

class OpusRunner : public FileRunner {
 public:
  OpusRunner(std::string name, const OpusOptions& options) : FileRunner(std::move(name)), options_(options) {}

  std::string version() const override { return opus_get_version_string(); }

  /// opusenc has no choice of application; the ffmpeg command does.
  std::string recipe(const OperatingPoint& point) const override {
    return std::string("ffmpeg -i IN.wav -c:a libopus -application ") + application() + " -b:a " +
           point.setting +
           "k -vbr on -compression_level 10 -frame_duration 20 OUT.opus; opusdec OUT.opus DECODED.wav";
  }

  std::vector<OperatingPoint> points() const override {
    std::vector<OperatingPoint> points;
    for (const double kbps : options_.kbps) {
      const std::string number = plain_number(kbps);
      points.push_back({.name = number + " kbps", .nominal_kbps = kbps, .setting = number});
    }
    return points;
  }

  bool conceals() const override { return true; }
  int coded_rate_hz(const OperatingPoint& /*point*/, int sample_rate_hz) const override {
    return nearest_rate(kRates, sample_rate_hz);
  }

  Result<CodedFile> encode(const OperatingPoint& point, std::span<const float> pcm,
                           int rate_hz) const override {
    int status = OPUS_OK;
    const int application =
        options_.application == OpusApplication::voip ? OPUS_APPLICATION_VOIP : OPUS_APPLICATION_AUDIO;
    const EncoderHandle encoder(opus_encoder_create(rate_hz, 1, application, &status), opus_encoder_destroy);
    if (status != OPUS_OK) return opus_error("creating the encoder", status);
    const auto bitrate_bps = static_cast<opus_int32>(std::lround(point.nominal_kbps * 1000));
    opus_int32 lookahead = 0;
    for (const int result : {opus_encoder_ctl(encoder.get(), OPUS_SET_BITRATE(bitrate_bps)),
                             opus_encoder_ctl(encoder.get(), OPUS_SET_VBR(1)),
                             opus_encoder_ctl(encoder.get(), OPUS_SET_VBR_CONSTRAINT(0)),
                             opus_encoder_ctl(encoder.get(), OPUS_SET_COMPLEXITY(10)),
                             opus_encoder_ctl(encoder.get(), OPUS_GET_LOOKAHEAD(&lookahead))}) {
      if (result != OPUS_OK) return opus_error("setting up the encoder for " + point.name, result);
    }

    const int clock = kClockHz / rate_hz;
    const int pre_skip = lookahead * clock;
    std::vector<OggPacket> packets;
    packets.push_back({.bytes = head_packet(pre_skip, rate_hz)});
    packets.push_back({.bytes = tags_packet()});
    const auto frame = static_cast<std::size_t>(rate_hz / kPacketsPerSecond);
    const std::size_t needed = pcm.size() + static_cast<std::size_t>(lookahead);
    std::vector<float> block(frame);
    std::array<unsigned char, kMaxPacket> bytes{};
    for (std::size_t at = 0; at < needed; at += frame) {
      const auto some =
          pcm.subspan(std::min(at, pcm.size()), at < pcm.size() ? std::min(frame, pcm.size() - at) : 0);
      std::fill(std::copy(some.begin(), some.end(), block.begin()), block.end(), 0.0f);
      const opus_int32 size = opus_encode_float(encoder.get(), block.data(), static_cast<int>(frame),
                                                bytes.data(), static_cast<opus_int32>(bytes.size()));
      if (size < 0) return opus_error("encoding", size);
      const auto packet = std::as_bytes(std::span(bytes).first(static_cast<std::size_t>(size)));
      packets.push_back({.bytes = {packet.begin(), packet.end()},
                         .granule = static_cast<std::int64_t>(at + frame) * clock});
    }
    // The last position says where the sound ends within the last packet.
    packets.back().granule = pre_skip + static_cast<std::int64_t>(pcm.size()) * clock;
    CodedFile file;
    file.bytes = write_ogg(packets, kHeaders, kPacketsPerSecond);
    file.payload_bytes = payload_bytes(packets, kHeaders);
    return file;
  }

  Result<DecodedFile> decode(const OperatingPoint& /*point*/, std::span<const std::byte> file,
                             int /*coded_rate_hz*/, LossTrace* loss) const override {
    const auto packets = read_ogg(file);
    if (!packets) return packets.error();
    if (packets->size() <= kHeaders || packets->front().bytes.size() < kHeadBytes) {
      return Error{ErrorCode::format, "expected an Ogg Opus file, got another stream"};
    }
    const auto& head = packets->front().bytes;
    const int pre_skip = static_cast<int>(get(head, 10, 2));
    const int rate_hz = static_cast<int>(get(head, 12, 4));
    int status = OPUS_OK;
    const DecoderHandle decoder(opus_decoder_create(rate_hz, 1, &status), opus_decoder_destroy);
    if (status != OPUS_OK) return opus_error("creating the decoder", status);

    DecodedFile decoded;
    decoded.sample_rate_hz = rate_hz;
    std::vector<float> block(static_cast<std::size_t>(rate_hz / kPacketsPerSecond));
    for (const OggPacket& packet : std::span(*packets).subspan(kHeaders)) {
      const bool lost = loss && loss->next();
      const int samples = opus_decode_float(
          decoder.get(), lost ? nullptr : reinterpret_cast<const unsigned char*>(packet.bytes.data()),
          lost ? 0 : static_cast<opus_int32>(packet.bytes.size()), block.data(),
          static_cast<int>(block.size()), 0);
      if (samples < 0) return opus_error("decoding", samples);
      decoded.pcm.insert(decoded.pcm.end(), block.begin(), block.begin() + samples);
      ++decoded.packets;
      decoded.lost += lost ? 1 : 0;
    }
    const int clock = kClockHz / rate_hz;
    const std::int64_t length = (packets->back().granule - pre_skip) / clock;
    auto& pcm = decoded.pcm;
    pcm.erase(pcm.begin(), pcm.begin() + std::min<std::ptrdiff_t>(pre_skip / clock, std::ssize(pcm)));
    pcm.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(length, 0, std::ssize(pcm))));
    return decoded;
  }

 private:
  const char* application() const { return options_.application == OpusApplication::voip ? "voip" : "audio"; }

  OpusOptions options_;
};

}  // namespace

Result<std::unique_ptr<CodecRunner>> make_opus_runner(const OpusOptions& options) {
  for (const double kbps : options.kbps) {
    if (!(kbps >= 6 && kbps <= 510)) {
      return Error{ErrorCode::usage, "opus: expected 6 to 510 kbps, got " + plain_number(kbps)};
    }
  }
  std::string name = options.name;
  if (name.empty()) name = options.application == OpusApplication::voip ? "opus" : "opus_audio";
  return std::unique_ptr<CodecRunner>(std::make_unique<OpusRunner>(std::move(name), options));
}

std::string opus_absence() {
  return "";
}

}  // namespace tessera::bench
