#include "apps/bench/recordings.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "codec/media.h"
#include "core/hash.h"
#include "core/mapped_file.h"
#include "train/data/sources.h"

namespace tessera::bench {
namespace {

// "test" of "data/test", "data/test/" and, standing in it, ".".
std::string own_name(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path path = fs::weakly_canonical(folder, error);
  if (error) path = fs::path(folder).lexically_normal();
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

}  // namespace

Result<std::vector<Recording>> find_recordings(const DataOptions& options) {
  std::vector<Recording> found;
  std::set<std::pair<std::string, std::string>> known;
  for (const std::string& folder : options.folders) {
    train::SourceOptions sources;
    sources.sources = {folder};
    const auto files = train::find_sources(sources);
    if (!files) return files.error();
    for (const train::SourceFile& file : files->files) {
      Recording recording;
      const std::size_t slash = file.relative.find('/');
      recording.set = slash == std::string::npos ? own_name(folder) : file.relative.substr(0, slash);
      recording.name = file.relative;
      recording.path = file.path;
      if (!known.emplace(recording.set, recording.name).second) {
        return Error{ErrorCode::usage, "expected data folders with different names inside, got " +
                                           recording.name + " of the set " + recording.set + " again in " +
                                           folder};
      }
      found.push_back(std::move(recording));
    }
  }
  if (options.limit <= 0) return found;
  std::map<std::string, std::int64_t> sizes, seen;
  for (const Recording& recording : found) ++sizes[recording.set];
  std::vector<Recording> kept;
  for (Recording& recording : found) {
    // Number i of n is kept where floor((i + 1) limit / n) goes up: `limit` of them, evenly.
    const std::int64_t i = seen[recording.set]++, n = sizes[recording.set];
    const std::int64_t limit = std::min<std::int64_t>(options.limit, n);
    if ((i + 1) * limit / n > i * limit / n) kept.push_back(std::move(recording));
  }
  return kept;
}

Result<Sound> read_recording(const std::string& path) {
  ReadOptions options;
  options.channels = ChannelMode::mix;
  auto reader = AudioReader::open(path, options);
  if (!reader) return reader.error();
  Sound sound;
  sound.sample_rate_hz = reader->sample_rate_hz();
  if (const auto frames = reader->frames()) {
    sound.pcm.reserve(static_cast<std::size_t>(std::clamp<std::int64_t>(*frames, 0, 1 << 26)));
  }
  std::vector<float> part(1 << 14);
  for (;;) {
    const auto count = reader->read(part);
    if (!count) return count.error();
    if (*count == 0) break;
    sound.pcm.insert(sound.pcm.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(*count));
  }
  sound.notes = reader->notes();
  if (sound.pcm.empty()) return Error{ErrorCode::format, path + ": expected sound, got no samples"};
  if (!std::all_of(sound.pcm.begin(), sound.pcm.end(), [](float x) { return std::isfinite(x); })) {
    return Error{ErrorCode::format, path + ": expected samples, got one that is no number"};
  }
  return sound;
}

Result<std::string> hash_of_file(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return file.error();
  return hex(content_hash(file->bytes()));
}

}  // namespace tessera::bench
