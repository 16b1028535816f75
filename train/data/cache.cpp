#include "train/data/cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "codec/media.h"
#include "core/atomic_file.h"
#include "core/hash.h"
#include "core/mapped_file.h"

namespace tessera::train {
namespace {

constexpr char kMagic[8] = {'T', 'S', 'R', 'P', 'C', 'M', '0', '1'};
constexpr std::size_t kHashBlock = std::size_t{1} << 20;
constexpr std::size_t kReadSamples = std::size_t{1} << 16;
constexpr float kLoudest = 16;
constexpr std::size_t kMostNotes = 4096;  // bytes

struct Header {
  char magic[8] = {};
  std::int32_t rate_hz = 0;
  std::int32_t bits = 0;  // 16 or 32
  std::int64_t samples = 0;
  std::int32_t source_rate_hz = 0;
  std::int32_t source_channels = 0;
  std::int64_t notes_bytes = 0;  // text after the samples, one note a line
  std::uint64_t body_hash = 0;   // of samples and notes
  std::uint64_t unused = 0;
  std::uint64_t header_hash = 0;  // of everything above
};
static_assert(sizeof(Header) == kCacheHeaderBytes);

std::uint64_t hash_of(const Header& header) {
  return content_hash(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_hash)));
}

/// The hash of a body that comes in pieces: the hash of the hashes of its blocks of 1 MiB.
class BodyHash {
 public:
  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (block_.empty() && bytes.size() >= kHashBlock) {
        hashes_.push_back(content_hash(bytes.first(kHashBlock)));
        bytes = bytes.subspan(kHashBlock);
        continue;
      }
      const auto piece = bytes.first(std::min(bytes.size(), kHashBlock - block_.size()));
      block_.insert(block_.end(), piece.begin(), piece.end());
      bytes = bytes.subspan(piece.size());
      if (block_.size() == kHashBlock) close_block();
    }
  }
  std::uint64_t finish() {
    close_block();
    return content_hash(std::as_bytes(std::span(hashes_)));
  }

 private:
  void close_block() {
    if (!block_.empty()) hashes_.push_back(content_hash(block_));
    block_.clear();
  }
  std::vector<std::byte> block_;
  std::vector<std::uint64_t> hashes_;
};

/// Writes samples as they come. Throws ResultError.
class CacheWriter {
 public:
  CacheWriter(const std::string& path, bool pcm16) : file_(AtomicFile::create(path).value()), pcm16_(pcm16) {
    file_.write(std::as_bytes(std::span(&header_, 1))).value();  // again when its numbers are known
  }

  /// False when a sample has no 16-bit value: nothing of the piece was written.
  bool write(std::span<const float> samples) {
    if (pcm16_) {
      integers_.resize(samples.size());
      for (std::size_t i = 0; i < samples.size(); ++i) {
        const float scaled = samples[i] * 32768.0f;  // exact
        if (!(scaled >= -32768.0f && scaled <= 32767.0f)) return false;
        integers_[i] = static_cast<std::int16_t>(scaled);
        if (static_cast<float>(integers_[i]) != scaled) return false;
      }
    }
    put(pcm16_ ? std::as_bytes(std::span(integers_)) : std::as_bytes(samples));
    samples_ += static_cast<std::int64_t>(samples.size());
    return true;
  }

  void finish(CachedRecording& recording, int rate_hz) {
    std::string text;
    for (const auto& note : recording.notes)
      if (text.size() + note.size() < kMostNotes) text += note + '\n';
    put(std::as_bytes(std::span(text)));
    std::memcpy(header_.magic, kMagic, sizeof kMagic);
    header_.rate_hz = rate_hz;
    header_.bits = pcm16_ ? 16 : 32;
    header_.samples = recording.samples = samples_;
    header_.source_rate_hz = recording.source_rate_hz;
    header_.source_channels = recording.source_channels;
    header_.notes_bytes = static_cast<std::int64_t>(text.size());
    header_.body_hash = hash_.finish();
    header_.header_hash = hash_of(header_);
    file_.write_at(0, std::as_bytes(std::span(&header_, 1))).value();
    file_.commit().value();
    recording.pcm16 = pcm16_;
  }

  std::int64_t samples() const { return samples_; }

 private:
  void put(std::span<const std::byte> bytes) {
    hash_.add(bytes);
    file_.write(bytes).value();
  }

  AtomicFile file_;
  bool pcm16_;
  Header header_;
  BodyHash hash_;
  std::vector<std::int16_t> integers_;
  std::int64_t samples_ = 0;
};

/// Nothing when 16 bits turn out not to suffice.
Result<std::optional<CachedRecording>> decode(const std::string& path, int rate_hz, const std::string& cache,
                                              bool pcm16) {
  auto reader = AudioReader::open(path, {rate_hz, ChannelMode::mix});
  if (!reader) return reader.error();
  CachedRecording recording;
  recording.source_rate_hz = reader->input().sample_rate_hz;
  recording.source_channels = reader->input().channels;
  if (pcm16 && (recording.source_rate_hz != rate_hz || recording.source_channels != 1))
    return std::optional<CachedRecording>();
  CacheWriter writer(cache, pcm16);
  std::vector<float> block(kReadSamples);
  for (;;) {
    const auto got = reader->read(block);
    if (!got) return got.error();
    if (*got == 0) break;
    const auto samples = std::span<const float>(block).first(*got);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (!(std::abs(samples[i]) <= kLoudest)) {
        return Error{ErrorCode::format, "cannot use " + path +
                                            ": expected samples within 16 times full scale, got " +
                                            std::to_string(samples[i]) + " at sample " +
                                            std::to_string(writer.samples() + static_cast<std::int64_t>(i))};
      }
    }
    if (!writer.write(samples)) return std::optional<CachedRecording>();
  }
  if (writer.samples() == 0) return Error{ErrorCode::format, "cannot use " + path + ": it holds no samples"};
  recording.notes = reader->notes();
  writer.finish(recording, rate_hz);
  return std::optional(std::move(recording));
}

}  // namespace

Result<std::string> cache_name(const std::string& recording, int sample_rate_hz) {
  std::error_code error;
  const std::string real = std::filesystem::canonical(recording, error).string();
  struct stat status {};
  if (error || ::stat(real.c_str(), &status) != 0)
    return Error{ErrorCode::io, "cannot read " + recording + ": " +
                                    (error ? error.message() : std::string(std::strerror(errno)))};
  if (!S_ISREG(status.st_mode))  // opening a pipe would wait for its writer
    return Error{ErrorCode::io, "cannot read " + recording + ": expected a regular file"};
  const std::string key = real + '\n' + std::to_string(status.st_size) + '\n' +
                          std::to_string(status.st_mtim.tv_sec) + '.' +
                          std::to_string(status.st_mtim.tv_nsec) + '\n' + std::to_string(sample_rate_hz);
  return hex(content_hash(std::as_bytes(std::span(key)))) + ".pcm";
}

Result<CachedRecording> inspect_cache(const std::string& cache, int sample_rate_hz, bool whole) {
  auto file = MappedFile::open(cache);
  if (!file) return file.error();
  const auto bytes = file->bytes();
  const auto damaged = [&](const std::string& what) {
    return Error{ErrorCode::damaged, "the cache file " + cache + " is damaged: " + what};
  };
  Header header;
  if (bytes.size() < sizeof header) return damaged("it ends inside its header");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.header_hash != hash_of(header))
    return damaged("its header is not what was written");
  if (header.rate_hz != sample_rate_hz)
    return damaged("expected " + std::to_string(sample_rate_hz) + " Hz, got " +
                   std::to_string(header.rate_hz));
  CachedRecording recording;
  recording.samples = header.samples;
  recording.pcm16 = header.bits == 16;
  recording.source_rate_hz = header.source_rate_hz;
  recording.source_channels = header.source_channels;
  const auto body = bytes.subspan(sizeof header);
  const auto held = static_cast<std::int64_t>(body.size());
  const auto per_sample = static_cast<std::int64_t>(recording.bytes_per_sample());
  if (header.samples <= 0 || header.samples > held / per_sample || header.notes_bytes < 0 ||
      held - header.samples * per_sample != header.notes_bytes)
    return damaged("expected " + std::to_string(header.samples) + " samples, got " + std::to_string(held) +
                   " bytes");
  if (whole) {
    BodyHash hash;
    hash.add(body);
    if (hash.finish() != header.body_hash) return damaged("its samples are not what was written");
  }
  const auto notes = body.last(static_cast<std::size_t>(header.notes_bytes));
  for (auto rest = std::string_view(reinterpret_cast<const char*>(notes.data()), notes.size());
       !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    recording.notes.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return recording;
}

Result<CachedRecording> decode_to_cache(const std::string& recording, int sample_rate_hz,
                                        const std::string& cache) {
  for (const bool pcm16 : {true, false}) {
    auto decoded = decode(recording, sample_rate_hz, cache, pcm16);
    if (!decoded) return decoded.error();
    if (*decoded) return **std::move(decoded);
  }
  return Error{ErrorCode::format, "cannot use " + recording + ": it changed while it was read"};
}

void read_samples(std::span<const std::byte> samples, bool pcm16, std::int64_t begin, std::span<float> out) {
  const std::size_t size = pcm16 ? 2 : 4;
  const std::byte* from = samples.data() + static_cast<std::size_t>(begin) * size;
  if (!pcm16) {
    std::memcpy(out.data(), from, out.size() * size);
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int16_t value = 0;
    std::memcpy(&value, from + i * size, size);
    out[i] = static_cast<float>(value) * (1.0f / 32768.0f);
  }
}

}  // namespace tessera::train
