#include "apps/bench/result_cache.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/atomic_file.h"
#include "core/hash.h"
#include "core/mapped_file.h"

namespace tessera::bench {

ResultCache::ResultCache(std::string folder) : folder_(std::move(folder)) {}

Result<ResultCache> ResultCache::open(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{ErrorCode::io, folder + ": cannot make this folder: " + error.message()};
  return ResultCache(folder);
}

std::string ResultCache::path_of(const std::string& key) const {
  return folder_ + "/" + hex(content_hash(std::as_bytes(std::span(key)))) + ".json";
}

std::optional<nlohmann::json> ResultCache::find(const std::string& key) const {
  const auto file = MappedFile::open(path_of(key));
  if (!file) return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(file->bytes().data());
  nlohmann::json object = nlohmann::json::parse(text, text + file->bytes().size(), nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const auto known = object.find("key");
  const auto value = object.find("value");
  if (known == object.end() || *known != key || value == object.end()) return std::nullopt;
  return std::move(*value);
}

Result<void> ResultCache::store(const std::string& key, const nlohmann::json& value) const {
  const nlohmann::json object = {{"key", key}, {"value", value}};
  auto file = AtomicFile::create(path_of(key));
  if (!file) return file.error();
  const std::string text = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (const auto written = file->write(text); !written) return written;
  return file->commit();
}

}  // namespace tessera::bench
