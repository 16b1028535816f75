#include "codec/config_file.h"

#include <filesystem>
#include <fstream>

#include "core/result.h"

namespace tessera {

ConfigFile::ConfigFile(const std::string& folder, const std::string& model_type) {
  if (folder.empty()) return;
  path_ = (std::filesystem::path(folder) / "config.json").string();
  std::error_code missing;
  if (!std::filesystem::is_regular_file(path_, missing)) return;
  std::ifstream stream(path_);
  if (!stream) throw ResultError({ErrorCode::io, path_ + ": cannot be read"});
  nlohmann::json json = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    throw ResultError({ErrorCode::format, path_ + ": expected a JSON object, got something else"});
  if (json.value("model_type", nlohmann::json()) == model_type) json_ = std::move(json);
}

double ConfigFile::number(const char* key, double otherwise) const {
  const auto found = json_.find(key);
  if (found == json_.end() || found->is_null()) return otherwise;
  if (found->is_number()) return found->get<double>();
  throw ResultError(
      {ErrorCode::format, path_ + ": expected a number under \"" + key + "\", got " + found->dump()});
}

int ConfigFile::integer(const char* key, int otherwise) const {
  const double value = number(key, otherwise);
  if (value >= 0 && value <= 1e9) return static_cast<int>(value);
  throw ResultError({ErrorCode::format, path_ + ": expected a number from 0 to 1e9 under \"" + key + "\""});
}

}  // namespace tessera
