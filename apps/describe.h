// Codecs and containers in words and as JSON, as `info`, `models` and `--version` show them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "apps/report.h"
#include "codec/codec.h"

namespace tessera::app {

/// Lines of a name and a value, the values below each other.
std::string table(const std::vector<std::pair<std::string, std::string>>& rows);

/// What a codec is. Rates are those of a minute's file with packed tokens, container included.
Json codec_json(const CodecInfo& info);
std::string codec_text(const CodecInfo& info);

}  // namespace tessera::app
