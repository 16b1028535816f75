// Any codec that is a program: two lines of the shell, one from a WAV file to the codec's own file, one back.
// Leaves out simulated loss and codecs that need a server or a terminal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/bench/codec_runner.h"
#include "core/result.h"

namespace tessera::bench {

/// {input} and {output} become paths of files in a folder that goes away, {point} the setting of the point,
/// as they are. Lines run in the current folder. A program that ends with another status than 0 or writes no
/// file has failed.
struct ExternalOptions {
  std::string name = {};
  std::string encode = {};  ///< from a 16-bit mono WAV file at the recording's rate
  std::string decode = {};  ///< to any sound file, at any rate
  std::vector<std::string> points = {};
  std::string coded_ending = {};  ///< of the codec's file, for programs that go by it: ".opus"
  std::string version = {};  ///< empty: a hash of the lines, which does not tell versions of a program apart
  double timeout_s = 600;    ///< of one line
};

/// Error (usage): a bad name, a line without {input} or {output}, {point} without points, several points
/// without {point}, an empty point.
Result<std::unique_ptr<CodecRunner>> make_external_runner(const ExternalOptions& options);

}  // namespace tessera::bench
