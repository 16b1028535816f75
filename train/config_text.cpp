// The configuration as text: JSON with or without comments, and the table of keys.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "train/config.h"
#include "train/config_fields.h"
#include "train/field_text.h"
#include "train/text.h"

namespace tessera::train {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_of(bool value) {
  return value ? "true" : "false";
}
std::string json_of(int value) {
  return std::to_string(value);
}
std::string json_of(std::int64_t value) {
  return std::to_string(value);
}
std::string json_of(double value) {
  return shortest(value);
}
std::string json_of(const std::string& value) {
  return quoted(value);
}
template <class List>
std::string json_of(const List& list) {
  std::string text = "[";
  for (std::size_t i = 0; i < list.size(); ++i) text += (i ? ", " : "") + json_of(list[i]);
  return text + "]";
}

struct ToJson {
  std::string operator()(const Choice& choice) const { return quoted(choice.names[choice.get()]); }
  template <class T>
  std::string operator()(const T* value) const {
    return json_of(*value);
  }
};

std::string print(TrainConfig config, bool comments) {
  const ConfigTable table = table_of(config);
  std::string text = "{\n";
  for (const Section& section : table.sections) {
    if (comments) text += (text.size() > 2 ? "\n  // " : "  // ") + section.help + "\n";
    text += "  " + quoted(section.name) + ": {\n";
    std::vector<std::pair<std::string, const Field*>> lines;
    for (const Field& field : table.fields) {
      if (field.section != section.name) continue;
      lines.emplace_back("    " + quoted(field.key) + ": " + std::visit(ToJson(), field.value), &field);
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::string line = lines[i].first + (i + 1 < lines.size() ? "," : "");
      if (comments) line.append(line.size() < 36 ? 36 - line.size() : 0, ' ');
      text += line + (comments ? "  // " + lines[i].second->help : "") + "\n";
    }
    text += section.name == table.sections.back().name ? "  }\n" : "  },\n";
  }
  return text + "}\n";
}

}  // namespace

std::string to_json(const TrainConfig& config) {
  return print(config, false);
}

std::string default_config() {
  TrainConfig config;
  config.data.train = {"recordings"};
  return "// Configuration of `tessera train`: what is left out has the value that stands here. Only "
         "data.train must "
         "be given.\n" +
         print(config, true);
}

std::string config_help() {
  TrainConfig config;
  const ConfigTable table = table_of(config);
  std::size_t width = 0;
  for (const Field& field : table.fields) width = std::max(width, field.key.size());
  std::string text;
  for (const Section& section : table.sections) {
    text += (text.empty() ? "" : "\n") + section.name + ": " + section.help + "\n";
    for (const Field& field : table.fields) {
      if (field.section != section.name) continue;
      text += "  " + field.key + std::string(width + 2 - field.key.size(), ' ') + field.help + "\n" +
              std::string(width + 4, ' ') + expected(field) +
              (field.required ? "; required" : "; default " + std::visit(ToJson(), field.value)) + "\n";
    }
  }
  return text;
}

}  // namespace tessera::train
