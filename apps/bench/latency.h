// The algorithmic latency of a codec, found from outside: how far into the future of a sound the codec must
// have heard before it can give that sound. Two inputs are equal up to sample n and differ from n on; the
// decoded sounds first differ at m. With the codec's delay D taken out, what belongs to the time m - D waited
// for the input of time n: n - (m - D) + 1 samples. The latency is the largest of these over n (frame,
// look-ahead and filters together). It is a lower bound: a codec need not react to the one sample that would
// show the rest, typically some samples. Leaves out what processor, packets and network add.
#pragma once

#include <cstdint>
#include <span>

#include "apps/bench/codec_runner.h"
#include "core/result.h"

namespace tessera::bench {

/// Differences below this part of full scale do not count: the ripple of a resampler's filter.
constexpr double kLeastDifference = 1e-4;

/// In ms. `delay_samples` is that of the decoded sound (ResultRow), `pcm` at least 1.2 s of sound. Errors:
/// the codec's; usage (too short); unsupported (the codec gives another sound each time, never reacts, or
/// reacts at the beginning of the file: it hears the whole file first, or its frames are longer than 0.4 s).
Result<double> measure_latency_ms(const CodecRunner& runner, const OperatingPoint& point,
                                  std::span<const float> pcm, int sample_rate_hz, std::int64_t delay_samples);

}  // namespace tessera::bench
