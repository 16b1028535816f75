// What was measured before, as one small JSON file for each answer: {"key": ..., "value": ...} under a name
// made from the key. Files appear when they are whole, so a run that was stopped goes on where it was.
// Nothing is ever deleted; the folder may be.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/result.h"

namespace tessera::bench {

/// Const and usable by several threads at once.
class ResultCache {
 public:
  /// Makes the folder. Error: io.
  static Result<ResultCache> open(const std::string& folder);

  /// The value of exactly this key. None: not there, or a file that is damaged or of another key.
  std::optional<nlohmann::json> find(const std::string& key) const;
  /// Takes the place of what is there. Error: io.
  Result<void> store(const std::string& key, const nlohmann::json& value) const;

 private:
  explicit ResultCache(std::string folder);
  std::string path_of(const std::string& key) const;

  std::string folder_;
};

}  // namespace tessera::bench
