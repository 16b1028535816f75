// Reading the configuration by its table (config_fields.h), and what one key cannot say alone.
#include "train/config.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/untrusted.h"
#include "train/config_check.h"
#include "train/config_fields.h"
#include "train/field_text.h"

namespace tessera::train {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostBytes = 1 << 20;

Error usage(const std::string& message) {
  return Error{ErrorCode::usage, message};
}

/// Insertions, deletions and replacements that make one word of the other (Levenshtein 1966).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

/// `; did you mean "x"?` for the nearest name, if one is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
  if (word.size() > 64) return "";
  const auto nearest =
      std::ranges::min_element(names, {}, [word](const std::string& name) { return distance(word, name); });
  if (nearest == names.end() || distance(word, *nearest) > std::max<std::size_t>(2, word.size() / 3))
    return "";
  return "; did you mean " + in_quotes(*nearest) + "?";
}

/// Reads one JSON value into its place; false when it does not fit.
struct FromJson {
  const Json& json;
  const Range& range;

  bool read(double& value) const {
    if (!json.is_number()) return false;
    value = json.get<double>();
    return std::isfinite(value) && value >= range.least && value <= range.most;
  }
  template <class Whole>
  bool read_whole(Whole& value) const {
    double number = 0;
    if (!json.is_number_integer() || !read(number)) return false;
    constexpr double kLimit = std::is_same_v<Whole, int> ? 0x1p31 : 0x1p63;
    if (number < -kLimit || number >= kLimit) return false;
    value = json.get<Whole>();
    return true;
  }
  bool read(int& value) const { return read_whole(value); }
  bool read(std::int64_t& value) const { return read_whole(value); }
  bool read(bool& value) const {
    if (json.is_boolean()) value = json.get<bool>();
    return json.is_boolean();
  }
  bool read(std::string& value) const {
    if (json.is_string()) value = json.get<std::string>();
    return json.is_string();
  }
  bool read(std::array<double, 2>& pair) const {
    std::vector<double> list;
    if (!read(list) || list.size() != 2) return false;
    std::ranges::copy(list, pair.begin());
    return true;
  }
  template <class T>
  bool read(std::vector<T>& list) const {
    if (!json.is_array()) return false;
    std::vector<T> values;
    for (const Json& element : json) {
      T value{};
      if (!FromJson{element, range}.read(value)) return false;
      values.push_back(std::move(value));
    }
    list = std::move(values);
    return true;
  }

  template <class T>
  bool operator()(T* value) const {
    return read(*value);
  }
  bool operator()(const Choice& choice) const {
    if (!json.is_string()) return false;
    const auto name = std::ranges::find(choice.names, json.get<std::string>());
    if (name == choice.names.end()) return false;
    choice.set(static_cast<std::size_t>(name - choice.names.begin()));
    return true;
  }
};

/// The text as JSON; keys that come twice are errors, too.
Result<Json> parse(std::string_view text, const std::string& name) {
  if (text.size() > kMostBytes)
    return usage(name + ": expected at most 1 MiB, got " + std::to_string(text.size()) + " bytes");
  std::vector<std::set<std::string>> open;  // keys of the objects that are open
  std::string twice;
  const auto watch = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event != Json::parse_event_t::key || open.back().insert(value.get<std::string>()).second) return true;
    if (twice.empty()) twice = value.get<std::string>();
    return true;
  };
  try {
    Json json = Json::parse(text, watch, true, true);
    if (!twice.empty()) return usage(name + ": the key " + in_quotes(twice) + " comes twice");
    return json;
  } catch (const Json::parse_error& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error ...": without the first
    // part.
    const std::string what = error.what();
    const std::size_t place = what.find(" at ");
    std::string reason = place == std::string::npos ? what : what.substr(place + 4);
    for (char& c : reason) c = static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    return usage(name + ": expected JSON: " + reason.substr(0, 200));
  }
}

const Field* find_field(const ConfigTable& table, const std::string& section, const std::string& key) {
  for (const Field& field : table.fields) {
    if (field.section == section && field.key == key) return &field;
  }
  return nullptr;
}

std::vector<std::string> keys_of(const ConfigTable& table, const std::string& section) {
  std::vector<std::string> keys;
  for (const Field& field : table.fields) {
    if (field.section == section) keys.push_back(field.key);
  }
  return keys;
}

Error unknown_key(const ConfigTable& table, const std::string& name, const std::string& section,
                  const std::string& key) {
  std::string hint = suggestion(key, keys_of(table, section));
  for (const Field& field : table.fields) {
    if (hint.empty() && field.key == key) hint = "; it belongs to " + in_quotes(field.section);
  }
  return usage(name + ": " + section + ": unknown key " + in_quotes(key) + hint);
}

}  // namespace

Result<TrainConfig> parse_config(std::string_view text, const std::string& name) {
  const auto json = parse(text, name);
  if (!json) return json.error();
  if (!json->is_object()) return usage(name + ": expected an object of sections, got " + json->type_name());
  TrainConfig config;
  const ConfigTable table = table_of(config);
  for (const auto& [section, keys] : json->items()) {
    if (std::ranges::find(table.sections, section, &Section::name) == table.sections.end()) {
      std::vector<std::string> names;
      for (const Section& known : table.sections) names.push_back(known.name);
      return usage(name + ": unknown section " + in_quotes(section) + suggestion(section, names));
    }
    if (!keys.is_object()) {
      return usage(name + ": " + section + ": expected an object, got " + keys.type_name());
    }
    for (const auto& [key, value] : keys.items()) {
      const Field* field = find_field(table, section, key);
      if (!field) return unknown_key(table, name, section, key);
      if (std::visit(FromJson{value, field->range}, field->value)) continue;
      std::string got = value.dump(-1, ' ', false, Json::error_handler_t::replace);
      if (got.size() > 60) got = got.substr(0, 60) + "...";
      return usage(name + ": " + section + ": " + key + ": expected " + expected(*field) + ", got " + got);
    }
  }
  if (const auto problem = contradiction(config)) return usage(name + ": " + *problem);
  return config;
}

std::int64_t crop_samples(const TrainConfig& config) {
  const double frames =
      std::round(config.data.seconds * config.model.sample_rate_hz / config.model.samples_per_frame());
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(frames)) * config.model.samples_per_frame();
}

Result<TrainConfig> read_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::io, "cannot open the configuration " + path};
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Error{ErrorCode::io, "cannot read the configuration " + path};
  text.resize(static_cast<std::size_t>(file.gcount()));
  return parse_config(text, path);
}

}  // namespace tessera::train
