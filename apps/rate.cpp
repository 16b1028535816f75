// The size comes from the container's own writer, run over empty tokens into a sink that only counts.
#include "apps/rate.h"

#include <algorithm>
#include <string>
#include <vector>

#include "apps/codec_source.h"
#include "apps/report.h"
#include "codec/tsr_writer.h"

namespace tessera::app {

double file_kbps(const CodecInfo& info, int codebooks, int channels, std::optional<std::int64_t> samples) {
  const std::int64_t minute = std::int64_t{60} * info.sample_rate_hz;
  const std::int64_t length = std::clamp<std::int64_t>(samples.value_or(minute), 1, minute);
  const ByteSink count = [](std::span<const std::byte>) { return Result<void>(); };
  auto writer = TsrWriter::open(count, tsr_header(info, codebooks, channels, EntropyCoder::packed)).value();
  const std::vector<std::int32_t> frame(static_cast<std::size_t>(codebooks) *
                                        static_cast<std::size_t>(channels));
  for (std::int64_t i = info.frames_for(length); i > 0; --i) writer.push(frame).value();
  writer.finish(static_cast<std::uint64_t>(length)).value();
  return true_kbps(writer.bytes(), static_cast<std::uint64_t>(length), info.sample_rate_hz);
}

Result<int> codebooks_for_rate(const CodecInfo& info, double kbps, int channels,
                               std::optional<std::int64_t> samples) {
  int fits = 0, above = info.codebooks + 1;
  while (above - fits > 1) {
    const int middle = fits + (above - fits) / 2;
    (file_kbps(info, middle, channels, samples) <= kbps ? fits : above) = middle;
  }
  if (fits > 0) return fits;
  return Error{ErrorCode::usage, "--kbps " + fixed(kbps, 3) + ": the lowest possible rate is " +
                                     fixed(file_kbps(info, 1, channels, samples), 3) +
                                     " kbps (one codebook, " + std::to_string(channels) +
                                     (channels == 1 ? " channel" : " channels") + ", container included)"};
}

}  // namespace tessera::app
