// Sound in and out of media files: what the command line needs around a codec. Reading takes whatever
// libsndfile or FFmpeg understands, from a file or a pipe; writing makes WAV and FLAC. All pull and push is
// in float frames, channels interleaved, nominal range [-1, 1], with memory that stays flat for input of any
// length. Resampling alone is codec/media/resampler.h. docs/media.md states rounding, lengths, filters and
// error texts. Left out: pictures, seeking, tags, lossy output formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace tessera {

/// How the channels of the input become the channels that read() delivers.
enum class ChannelMode {
  keep,   ///< as they are
  mix,    ///< one channel: the plain mean of all of them (of 5.1 too: no weights, the bass channel counts as
          ///< one)
  left,   ///< one channel: the first
  right,  ///< one channel: the second; of a mono input its only one (with a note)
};

struct ReadOptions {
  int sample_rate_hz = 0;  ///< rate to deliver; 0 keeps the input's own
  ChannelMode channels = ChannelMode::keep;
};

/// What the input is, before any resampling or mixing.
struct AudioInfo {
  std::string name;                  ///< for messages: the path, or "standard input"
  std::string container;             ///< "wav", "mov,mp4,m4a", ...
  std::string codec;                 ///< "16-bit pcm", "aac", ...
  int sample_rate_hz = 0;            ///< of the input
  int channels = 0;                  ///< of the input
  std::optional<int64_t> frames;     ///< exact count of input frames, when the container states it reliably
  std::optional<double> duration_s;  ///< the container's claim, good enough for a progress bar
};

/// Reads the sound of one file or pipe as interleaved float frames. Not for use from several threads at once.
class AudioReader {
 public:
  /// Opens `path`; "-" is standard input, which may be a pipe (so may `path`: a FIFO, /dev/fd/3).
  /// Errors: io (not found, a directory, no permission), format (empty, not media, no sound in it),
  /// unsupported (a codec that nothing here decodes, or libtessera_ffmpeg.so is missing), usage (rate out of
  /// range).
  static Result<AudioReader> open(const std::string& path, const ReadOptions& options = {});

  AudioReader(AudioReader&&) noexcept;
  AudioReader& operator=(AudioReader&&) noexcept;
  ~AudioReader();

  /// The input as it is.
  const AudioInfo& input() const;

  /// What read() delivers.
  int sample_rate_hz() const;
  int channels() const;
  /// Frames that read() will deliver in all, when known: ceil(input frames * rate out / rate in).
  std::optional<int64_t> frames() const;

  /// Fills `out` with up to out.size() / channels() frames and returns how many; 0 means the end, anything
  /// less than asked for may come at any time. `out` must hold at least one frame (throws UsageError). A
  /// damaged or truncated input first delivers everything that decodes, then gives one Error of code
  /// `damaged` that says where, then 0. After an Error of any other code the reader stays at its end.
  Result<size_t> read(std::span<float> out);

  /// One line for everything that was done to the sound and not asked for in so many words: resampling,
  /// mixing, the choice of one stream among several, samples out of range. More may come until read() has
  /// returned 0.
  const std::vector<std::string>& notes() const;

 private:
  struct State;
  explicit AudioReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// How samples are stored.
enum class SampleFormat {
  pcm16,    ///< round(x * 32768), ties to even, limited to [-32768, 32767]
  pcm24,    ///< round(x * 8388608), likewise
  float32,  ///< as they are (WAV only)
};

enum class AudioFileType {
  by_name,  ///< .flac makes FLAC; .wav, "-" and everything that is not a regular file make WAV; else an error
  wav,
  flac,
};

struct WriteOptions {
  int sample_rate_hz = 0;  ///< required
  int channels = 0;        ///< required; WAV up to 1024, FLAC up to 8
  SampleFormat format = SampleFormat::pcm16;
  AudioFileType type = AudioFileType::by_name;
};

/// Writes one WAV or FLAC file. The file appears under its name only when finish() has succeeded; dropped
/// before that, nothing is left behind. "-" is standard output; pipes and devices are written straight
/// through, as WAV whose sizes are 0xFFFFFFFF ("until the end"). A WAV above 4 GiB becomes RF64 by itself.
class AudioWriter {
 public:
  /// Errors: io (no such folder, a directory, no permission), usage (a rate, channel count or name that
  /// cannot work).
  static Result<AudioWriter> create(const std::string& path, const WriteOptions& options);

  AudioWriter(AudioWriter&&) noexcept;
  AudioWriter& operator=(AudioWriter&&) noexcept;
  ~AudioWriter();

  /// Appends whole frames; interleaved.size() must be a multiple of the channels (throws UsageError). Error:
  /// io.
  Result<void> write(std::span<const float> interleaved);

  /// Completes the header and puts the file in place. Nothing may be written after it. Error: io.
  Result<void> finish();

  /// Frames written so far.
  int64_t frames() const;
  /// Samples so far that did not fit the integer range (or were not a number, and became 0). Always 0 for
  /// float32.
  int64_t clipped() const;

 private:
  struct State;
  explicit AudioWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tessera
