// What a file is, from its first bytes and its name: nothing is parsed.
#pragma once

#include <string>

namespace tessera::app {

/// Named .tsr or starting like one. Of "-" and other pipes: false, a pipe cannot be looked into.
bool is_tsr_file(const std::string& path);
/// Named .safetensors or starting like one (a length, then a JSON object).
bool is_weights_file(const std::string& path);

}  // namespace tessera::app
