// The config.json that published checkpoints have beside their weights: optional, checked, read key by key.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tessera {

class ConfigFile {
 public:
  /// folder/config.json if it is there and its "model_type" is `model_type`; otherwise an empty one. `folder`
  /// "" has none. Throws ResultError: io (cannot be read), format (not JSON).
  ConfigFile(const std::string& folder, const std::string& model_type);

  /// The number under `key`, or `otherwise` if there is none. Throws ResultError (format) for anything else.
  int integer(const char* key, int otherwise) const;
  double number(const char* key, double otherwise) const;

 private:
  std::string path_;
  nlohmann::json json_;
};

}  // namespace tessera
