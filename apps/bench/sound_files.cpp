// Files for programs last a moment: they are written plainly, without the sync that makes others safe.
#include "apps/bench/sound_files.h"

#include <cstdint>
#include <fstream>

#include "apps/bench/file_runner.h"
#include "codec/media.h"
#include "codec/media/wav_header.h"
#include "core/mapped_file.h"

namespace tessera::bench {
namespace {

std::vector<std::byte> header(int sample_rate_hz, std::size_t samples) {
  return wav_header({.sample_rate_hz = sample_rate_hz, .channels = 1, .format = SampleFormat::pcm16},
                    static_cast<std::int64_t>(samples));
}

}  // namespace

Result<std::vector<std::byte>> read_bytes(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return Error{ErrorCode::io, file.error().message};
  return std::vector<std::byte>(file->bytes().begin(), file->bytes().end());
}

Result<void> write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return {};
  return Error{ErrorCode::io, path + ": cannot be written"};
}

Result<ReadSound> read_sound(const std::string& path) {
  auto reader = AudioReader::open(path, {.channels = ChannelMode::mix});
  if (!reader) return reader.error();
  ReadSound sound;
  sound.sample_rate_hz = reader->sample_rate_hz();
  std::vector<float> block(1 << 16);
  for (;;) {
    const auto count = reader->read(block);
    if (!count) return count.error();
    if (*count == 0) return sound;
    sound.pcm.insert(sound.pcm.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(*count));
  }
}

std::vector<std::byte> wav_bytes(std::span<const float> pcm, int sample_rate_hz) {
  std::vector<std::byte> bytes = header(sample_rate_hz, pcm.size());
  for (const std::int16_t value : to_pcm16(pcm)) {
    const auto bits = static_cast<std::uint16_t>(value);
    bytes.push_back(static_cast<std::byte>(bits & 0xff));
    bytes.push_back(static_cast<std::byte>(bits >> 8));
  }
  return bytes;
}

std::size_t wav_header_bytes() {
  return header(1, 0).size();
}

}  // namespace tessera::bench
