// Which phone is spoken when: alignments of recordings, as text. One line per recording,
// NAME<tab>FRAME:PHONE FRAME:PHONE ... FRAME:</s>
// where a phone begins with its frame of 10 ms and </s> is the end. Names in <> or [] (<sil>, [NOISE]) are
// not phones and count as silence. Leaves out words, and TextGrid and CTM files.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace tessera::metrics {

class PhoneAlignments {
 public:
  static constexpr double kFrameRateHz = 100;
  static constexpr std::int32_t kSilence = 0;  ///< its class
  static constexpr std::int32_t kNone = -1;    ///< label of a frame outside the alignment

  /// Several files share one numbering of the phones: 0 is silence, then in order of appearance. Errors: io;
  /// format with file and line for a line that is not as above, a name that comes twice, frames that do not
  /// increase, more than 1000 different phones.
  static Result<PhoneAlignments> read(std::span<const std::string> paths);

  /// Names of the classes; the first is "<sil>".
  const std::vector<std::string>& phones() const { return phones_; }
  int classes() const { return static_cast<int>(phones_.size()); }
  std::size_t size() const { return recordings_.size(); }
  /// Recordings are found by the last part of a path, without extension.
  bool contains(const std::string& recording) const;
  /// Of where its phones begin and what they are called, whatever else is in the files, as text; empty
  /// without an alignment.
  std::string hash(const std::string& recording) const;

  /// The class spoken in the middle of each of `frames` frames at `frame_rate_hz` from the recording's start;
  /// kNone where the alignment does not reach. Error: mismatch for a recording without alignment.
  Result<std::vector<std::int32_t>> labels(const std::string& recording, std::int64_t frames,
                                           double frame_rate_hz) const;

 private:
  struct Segment {
    std::int32_t begin = 0;  // in frames of 10 ms; the next one ends it
    std::int32_t phone = kNone;
  };

  Result<void> read_line(const std::string& line, std::map<std::string, std::int32_t, std::less<>>& ids);

  std::vector<std::string> phones_;
  std::map<std::string, std::vector<Segment>, std::less<>> recordings_;
};

}  // namespace tessera::metrics
