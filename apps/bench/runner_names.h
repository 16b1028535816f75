// The names of codecs: they go into tables, keys and file names.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace tessera::bench {

/// Error (usage) unless it is 1 to 64 of A-Z a-z 0-9 . _ + -
Result<void> check_name(std::string_view name);

/// The text with every other character as _, cut to 64; "codec" for none.
std::string safe_name(std::string_view text);

}  // namespace tessera::bench
