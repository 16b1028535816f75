// Letters are those of ASCII whatever the locale.
#include "apps/bench/runner_names.h"

#include <algorithm>

namespace tessera::bench {
namespace {

constexpr std::size_t kMaxName = 64;

bool allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '+' || c == '-';
}

}  // namespace

Result<void> check_name(std::string_view name) {
  if (!name.empty() && name.size() <= kMaxName && std::all_of(name.begin(), name.end(), allowed)) return {};
  return Error{ErrorCode::usage, "expected a codec's name of 1 to 64 letters, digits and . _ + -, got '" +
                                     std::string(name.substr(0, kMaxName)) + "'"};
}

std::string safe_name(std::string_view text) {
  std::string name(text.substr(0, kMaxName));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !allowed(c); }, '_');
  return name.empty() ? "codec" : name;
}

}  // namespace tessera::bench
