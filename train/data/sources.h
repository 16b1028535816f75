// Where recordings come from: folders, list files and single files become one list of paths in an order that
// is the same on every machine. Nothing is opened here but the lists. Left out: archives, network addresses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace tessera::train {

/// What counts as a recording inside a folder: wav flac ogg opus mp3 m4a aac mkv mp4.
const std::vector<std::string>& media_extensions();

struct SourceOptions {
  /// Each a folder (searched with all folders below it; names that begin with a dot are passed over), a list
  /// (.txt, .list or .lst: one path per line, relative to the list's folder; blank lines and lines that begin
  /// with # say nothing) or a single recording.
  std::vector<std::string> sources = {};
  /// Shell patterns (* ? [...]; * also matches /) of recordings to leave out. Each is tried on the whole
  /// path below the source and on the file's name alone.
  std::vector<std::string> exclude = {};
  /// Without dots; upper and lower case are the same. Entries of a list are taken whatever their extension.
  std::vector<std::string> extensions = media_extensions();
};

struct SourceFile {
  std::string path;      ///< opens it
  std::string relative;  ///< below its source, '/' between folders: the same on every machine
  std::string name;      ///< for messages: the source's own name before `relative` where it is a folder
};

struct SourceFiles {
  std::vector<SourceFile>
      files;                  ///< source by source in the order given, each sorted by `relative` (bytewise)
  std::int64_t excluded = 0;  ///< left out by a pattern
  std::int64_t repeated = 0;  ///< named again, by another source, a list or a link; taken once
};

/// Errors: usage (no source, a file that is none of the three kinds), io (no such source, a folder that may
/// not be read), format (a source without any recording: says what was looked for).
Result<SourceFiles> find_sources(const SourceOptions& options);

}  // namespace tessera::train
