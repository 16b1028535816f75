// What the tests of codecs share: a sound that speech codecs take for speech, and the delay of what comes
// back.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/bench/file_runner.h"

namespace tessera::bench {

/// Syllables of a gliding voice with two formants, and breath between them. Rounded to 16 bits.
std::vector<float> speech_like(double seconds, int rate_hz);

/// The runner as what it is below; fails the test when it could not be made.
const FileRunner& file_runner(const Result<std::unique_ptr<CodecRunner>>& made);

/// Runs it and expects what holds for every codec: the rate of the input, a length within `slack` samples,
/// the bytes of the file that encode() makes, a payload that fits into it, some packets if it has any, and
/// the same again.
CodedSound expect_run(const FileRunner& runner, const OperatingPoint& point, std::span<const float> pcm,
                      int rate_hz, std::int64_t slack);

/// Energies of blocks of 10 ms, less their mean.
std::vector<float> envelope(std::span<const float> pcm, int rate_hz);

}  // namespace tessera::bench
