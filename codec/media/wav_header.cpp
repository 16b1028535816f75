// Chunk by chunk: RIFF or RF64, JUNK or ds64, fmt, fact (floats only), data. Little-endian whatever the
// machine is.
#include "codec/media/wav_header.h"

#include <string_view>
#include <utility>

namespace tessera {
namespace {

constexpr uint32_t kUnknown = 0xffffffff;
constexpr int kPcm = 1, kFloat = 3, kExtensible = 0xfffe;

class Bytes {
 public:
  void text(std::string_view s) {
    for (const char c : s) bytes_.push_back(static_cast<std::byte>(c));
  }
  void number(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
  }
  size_t size() const { return bytes_.size(); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

void format_chunk(Bytes& out, const WriteOptions& options) {
  const int bytes = sample_bytes(options.format);
  const int tag = options.format == SampleFormat::float32 ? kFloat : kPcm;
  const bool extensible = options.channels > 2;
  const int align = bytes * options.channels;
  out.text("fmt ");
  out.number(extensible ? 40 : tag == kFloat ? 18 : 16, 4);
  out.number(static_cast<uint64_t>(extensible ? kExtensible : tag), 2);
  out.number(static_cast<uint64_t>(options.channels), 2);
  out.number(static_cast<uint64_t>(options.sample_rate_hz), 4);
  out.number(static_cast<uint64_t>(options.sample_rate_hz) * static_cast<uint64_t>(align), 4);
  out.number(static_cast<uint64_t>(align), 2);
  out.number(static_cast<uint64_t>(8 * bytes), 2);
  if (!extensible && tag == kPcm) return;
  out.number(extensible ? 22 : 0, 2);
  if (!extensible) return;
  out.number(static_cast<uint64_t>(8 * bytes), 2);
  out.number(0, 4);                           // no speakers assigned
  out.number(static_cast<uint64_t>(tag), 2);  // the rest of the GUID that every wave format tag shares:
  for (const int b : {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71})
    out.number(static_cast<uint64_t>(b), 1);
}

}  // namespace

std::vector<std::byte> wav_header(const WriteOptions& options, int64_t frames) {
  const auto count = static_cast<uint64_t>(frames);
  const uint64_t data = count * static_cast<uint64_t>(options.channels * sample_bytes(options.format));
  Bytes tail;
  format_chunk(tail, options);
  const bool fact = options.format == SampleFormat::float32;
  const uint64_t riff = 4 + 36 + tail.size() + (fact ? 12 : 0) + 8 + data + data % 2;
  const bool large = riff >= kUnknown;
  Bytes out;
  out.text(large ? "RF64" : "RIFF");
  out.number(large ? kUnknown : riff, 4);
  out.text("WAVE");
  out.text(large ? "ds64" : "JUNK");
  out.number(28, 4);
  for (const uint64_t size : {riff, data, count}) out.number(large ? size : 0, 8);
  out.number(0, 4);  // no table of further long chunks
  format_chunk(out, options);
  if (fact) {
    out.text("fact");
    out.number(4, 4);
    out.number(large ? kUnknown : count, 4);
  }
  out.text("data");
  out.number(large ? kUnknown : data, 4);
  return out.take();
}

std::vector<std::byte> wav_stream_header(const WriteOptions& options) {
  Bytes out;
  out.text("RIFF");
  out.number(kUnknown, 4);
  out.text("WAVE");
  format_chunk(out, options);
  out.text("data");
  out.number(kUnknown, 4);
  return out.take();
}

}  // namespace tessera
