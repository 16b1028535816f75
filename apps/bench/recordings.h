// The recordings to measure with: found in data folders, read as mono, known by a hash of their bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace tessera::bench {

struct Recording {
  std::string set = {};   ///< first folder below the data folder, or the data folder's own name
  std::string name = {};  ///< path below the data folder
  std::string path = {};  ///< opens it
};

struct DataOptions {
  std::vector<std::string> folders = {};
  int limit = 0;  ///< recordings of a set, taken evenly from all of it; 0: all
};

/// Media files (train/data/sources.h says which), folder by folder, sorted by name. Errors: those of
/// train::find_sources; usage (two folders that give the same set and name).
Result<std::vector<Recording>> find_recordings(const DataOptions& options);

struct Sound {
  std::vector<float> pcm = {};  ///< mono: the plain mean of all channels
  int sample_rate_hz = 0;       ///< the recording's own
  std::vector<std::string> notes = {};
};

/// Errors: those of AudioReader; format (no samples, a sample that is no number).
Result<Sound> read_recording(const std::string& path);

/// Of the file's bytes, as text. Errors: those of MappedFile.
Result<std::string> hash_of_file(const std::string& path);

}  // namespace tessera::bench
