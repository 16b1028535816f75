// Numbers are written as the shortest text that reads back as the same number.
#include "apps/bench/results_io.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "core/mapped_file.h"

namespace tessera::bench {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kFormat = "tessera-bench";
constexpr int kVersion = 1;

std::string number(double value) {
  std::array<char, 40> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

Json json_of(const ResultRow& row) {
  Json object;
  object["set"] = row.set;
  object["recording"] = row.recording;
  object["codec"] = row.codec;
  object["point"] = row.point;
  object["seconds"] = row.seconds;
  object["file_bytes"] = row.file_bytes;
  if (row.payload_bytes >= 0) object["payload_bytes"] = row.payload_bytes;
  object["kbps"] = row.kbps();
  object["encode_s"] = row.encode_s;
  object["decode_s"] = row.decode_s;
  object["delay_samples"] = row.delay_samples;
  object["loss_rate"] = row.loss_rate;
  object["scores"] = row.scores;
  if (!row.error.empty()) object["error"] = row.error;
  return object;
}

ResultRow row_from(const Json& object) {
  ResultRow row;
  object.at("set").get_to(row.set);
  object.at("recording").get_to(row.recording);
  object.at("codec").get_to(row.codec);
  object.at("point").get_to(row.point);
  object.at("seconds").get_to(row.seconds);
  object.at("file_bytes").get_to(row.file_bytes);
  row.payload_bytes = object.value("payload_bytes", std::int64_t{-1});
  object.at("encode_s").get_to(row.encode_s);
  object.at("decode_s").get_to(row.decode_s);
  object.at("delay_samples").get_to(row.delay_samples);
  object.at("loss_rate").get_to(row.loss_rate);
  object.at("scores").get_to(row.scores);
  row.error = object.value("error", "");
  return row;
}

Json json_of(const CodecCost& cost) {
  Json object;
  object["codec"] = cost.codec;
  object["point"] = cost.point;
  object["encode_real_time"] = cost.encode_real_time;
  object["decode_real_time"] = cost.decode_real_time;
  object["peak_memory_mib"] = cost.peak_memory_mib;
  object["latency_ms"] = cost.latency_ms;
  object["start_up_ms"] = cost.start_up_ms;
  return object;
}

CodecCost cost_from(const Json& object) {
  CodecCost cost;
  object.at("codec").get_to(cost.codec);
  object.at("point").get_to(cost.point);
  object.at("encode_real_time").get_to(cost.encode_real_time);
  object.at("decode_real_time").get_to(cost.decode_real_time);
  object.at("peak_memory_mib").get_to(cost.peak_memory_mib);
  object.at("latency_ms").get_to(cost.latency_ms);
  object.at("start_up_ms").get_to(cost.start_up_ms);
  return cost;
}

Json json_of(const Example& example) {
  Json object;
  object["set"] = example.set;
  object["recording"] = example.recording;
  object["codec"] = example.codec;
  object["point"] = example.point;
  object["path"] = example.path;
  return object;
}

Example example_from(const Json& object) {
  Example example;
  object.at("set").get_to(example.set);
  object.at("recording").get_to(example.recording);
  object.at("codec").get_to(example.codec);
  object.at("point").get_to(example.point);
  object.at("path").get_to(example.path);
  return example;
}

std::string dumped(const Json& object, int indent = -1) {
  return object.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// "name": [ ... ] with each item on a line of its own: such files can be compared by line.
template <class Item>
std::string list(const char* name, const std::vector<Item>& items) {
  std::string text = ",\n\"" + std::string(name) + "\": [";
  for (std::size_t i = 0; i < items.size(); ++i) text += (i ? ",\n  " : "\n  ") + dumped(json_of(items[i]));
  return text + (items.empty() ? "]" : "\n]");
}

Result<void> write_file(const std::string& path, const std::string& text) {
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  if (const auto written = file->write(text); !written) return written;
  return file->commit();
}

}  // namespace

std::string results_csv(const Results& results) {
  std::string text =
      "set,recording,codec,point,seconds,file_bytes,payload_bytes,kbps,encode_s,decode_s,delay_samples,loss_"
      "rate";
  for (const std::string& metric : results.metrics) text += "," + quoted(metric);
  text += ",error\n";
  for (const ResultRow& row : results.rows) {
    text += quoted(row.set) + "," + quoted(row.recording) + "," + quoted(row.codec) + "," + quoted(row.point);
    text += "," + number(row.seconds) + "," + std::to_string(row.file_bytes) + ",";
    if (row.payload_bytes >= 0) text += std::to_string(row.payload_bytes);
    text += "," + number(row.kbps()) + "," + number(row.encode_s) + "," + number(row.decode_s);
    text += "," + std::to_string(row.delay_samples) + "," + number(row.loss_rate);
    for (const std::string& metric : results.metrics) {
      const auto score = row.scores.find(metric);
      text += "," + (score == row.scores.end() ? "" : number(score->second));
    }
    text += "," + quoted(row.error) + "\n";
  }
  return text;
}

std::string results_json(const Results& results) {
  std::string text =
      "{\n\"format\": \"" + std::string(kFormat) + "\",\n\"version\": " + std::to_string(kVersion);
  text += ",\n\"facts\": " + dumped(results.facts, 2);
  text += ",\n\"metrics\": " + dumped(results.metrics);
  text += ",\n\"recipes\": " + dumped(results.recipes, 2);
  text += list("costs", results.costs) + list("examples", results.examples) + list("rows", results.rows);
  return text + "\n}\n";
}

Result<Results> parse_results(const std::string& text, const std::string& name) {
  const auto wrong = [&](const std::string& what) {
    return Error{ErrorCode::format, name + ": expected results of the benchmark suite, got " + what};
  };
  const Json object = Json::parse(text, nullptr, false);
  if (!object.is_object()) return wrong("no JSON object");
  try {
    if (object.value("format", "") != kFormat) return wrong("another kind of file");
    const int version = object.value("version", 0);
    if (version != kVersion) {
      return wrong("version " + std::to_string(version) + ", not " + std::to_string(kVersion));
    }
    Results results;
    object.at("facts").get_to(results.facts);
    object.at("metrics").get_to(results.metrics);
    object.at("recipes").get_to(results.recipes);
    for (const Json& cost : object.at("costs")) results.costs.push_back(cost_from(cost));
    for (const Json& example : object.at("examples")) results.examples.push_back(example_from(example));
    for (const Json& row : object.at("rows")) results.rows.push_back(row_from(row));
    return results;
  } catch (const Json::exception& error) {
    return wrong(std::string("something else: ") + error.what());
  }
}

Result<void> write_results(const std::string& folder, const Results& results) {
  if (const auto written = write_file(folder + "/results.csv", results_csv(results)); !written)
    return written;
  return write_file(folder + "/results.json", results_json(results));
}

Result<Results> read_results(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return file.error();
  const auto bytes = file->bytes();
  return parse_results(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), path);
}

}  // namespace tessera::bench
