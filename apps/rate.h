// Rates as the bytes of a whole file: how large a recording becomes, and how many codebooks fit a rate.
#pragma once

#include <cstdint>
#include <optional>

#include "codec/codec.h"
#include "core/result.h"

namespace tessera::app {

/// kbps of a .tsr file with packed tokens (which adaptive coding nearly always undercuts), container
/// included. Of the first minute when the recording is longer or its length is not known.
double file_kbps(const CodecInfo& info, int codebooks, int channels, std::optional<std::int64_t> samples);

/// The most codebooks whose file stays at or below `kbps`. Error (usage): not even one does; names the lowest
/// rate.
Result<int> codebooks_for_rate(const CodecInfo& info, double kbps, int channels,
                               std::optional<std::int64_t> samples);

}  // namespace tessera::app
