// Damage to a first byte must not turn a .tsr file into media, hence the name counts too.
#include "apps/file_kind.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace tessera::app {
namespace {

// The first `size` bytes of a regular file, less if it has less.
std::string first_bytes(const std::string& path, std::size_t size) {
  std::error_code error;
  if (path == "-" || !std::filesystem::is_regular_file(path, error)) return "";
  std::string bytes(size, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

}  // namespace

bool is_tsr_file(const std::string& path) {
  return path.ends_with(".tsr") || first_bytes(path, 3) == "TSR";
}

bool is_weights_file(const std::string& path) {
  if (path.ends_with(".safetensors")) return true;
  const std::string bytes = first_bytes(path, 9);  // u64 length below 2^32, then the header's brace
  return bytes.size() == 9 && bytes.substr(4, 4) == std::string(4, '\0') && bytes[8] == '{';
}

}  // namespace tessera::app
