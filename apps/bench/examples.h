// Sounds kept to listen to: OUT/examples/*.wav, aligned with their recording and as long, levels untouched,
// as 16-bit WAV for the sake of browsers.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "apps/bench/result.h"
#include "core/result.h"

namespace tessera::bench {

/// Path of an example below the folder of the results: readable, and another one for another `key`.
std::string example_path(const Example& example, const std::string& key);

/// `delay_samples` are taken off the front (or added), then the sound is cut or filled with zeros to
/// `samples`. Error: io.
Result<void> write_example(const std::string& path, std::span<const float> pcm, int sample_rate_hz,
                           std::int64_t delay_samples, std::size_t samples);

}  // namespace tessera::bench
