// A codec as the benchmark suite sees it: something that turns a recording into the bytes of a file and back,
// at operating points of its own. Implementations wrap Tessera's models, libraries and any command line.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace tessera::bench {

/// One setting of a codec: a bitrate, a number of codebooks, a mode.
struct OperatingPoint {
  std::string name = {};     ///< "6 kbps", "8 codebooks", "mode 3200": unique within the codec
  double nominal_kbps = 0;   ///< for ordering; what is reported is measured
  std::string setting = {};  ///< what the codec is told: its own syntax
};

/// Which packets (frames) of a stream are lost; the same for equal seeds, whatever the codec.
struct LossOptions {
  double rate = 0;        ///< part of the packets that is lost; 0: none
  double mean_burst = 1;  ///< packets lost in a row, on average (Gilbert-Elliott, two states)
  std::uint64_t seed = 1;
};

struct CodedSound {
  std::vector<float> pcm = {};  ///< decoded, mono, at sample_rate_hz; not aligned, any length
  int sample_rate_hz = 0;
  std::int64_t file_bytes = 0;        ///< of the file that the decoder reads
  std::int64_t payload_bytes = -1;    ///< of the packets in it without container; -1: not known
  double encode_s = 0, decode_s = 0;  ///< wall time on one thread, start-up left out where that is possible
  std::int64_t packets = 0, lost = 0;
};

/// Const and usable by several threads at once.
class CodecRunner {
 public:
  virtual ~CodecRunner() = default;

  virtual std::string name() const = 0;  ///< "tessera_speech", "opus": unique in a run
  virtual std::string version()
      const = 0;  ///< of the library, or a hash of the weights: part of the cache key
  /// The command line or calls by which anyone can do the same, for a point.
  virtual std::string recipe(const OperatingPoint& point) const = 0;
  virtual std::vector<OperatingPoint> points() const = 0;
  /// Whether loss can be simulated.
  virtual bool conceals() const { return false; }
  /// Encodes and decodes pcm (mono, at `sample_rate_hz`; resampling to the codec's own rate and back is the
  /// codec's affair, and part of what is measured). Errors: as they come from the codec, with its name.
  virtual Result<CodedSound> run(const OperatingPoint& point, std::span<const float> pcm, int sample_rate_hz,
                                 const LossOptions& loss) const = 0;
};

}  // namespace tessera::bench
