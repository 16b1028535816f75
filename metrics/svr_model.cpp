#include "metrics/svr_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/exact_math.h"
#include "core/mapped_file.h"
#include "core/untrusted.h"

namespace tessera::metrics {
namespace {

// Cuts the first word off a line.
std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
  line.remove_prefix(word.size());
  return word;
}

std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// A finite number that fills the whole word.
std::optional<double> number(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

struct Entry {
  std::size_t index;
  double value;
};
// "index:value", the index from 1.
std::optional<Entry> entry(std::string_view word) {
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<double> index = number(word.substr(0, colon)), value = number(word.substr(colon + 1));
  if (!index || !value || *index < 1 || *index > static_cast<double>(SvrModel::kMaxFeatures)) {
    return std::nullopt;
  }
  return Entry{static_cast<std::size_t>(*index), *value};
}

}  // namespace

Result<SvrModel> SvrModel::open(const std::string& path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  const std::span<const std::byte> bytes = file->bytes();
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

Result<SvrModel> SvrModel::parse(std::string_view text, const std::string& name) {
  SvrModel model;
  std::size_t line_number = 0;
  const auto error = [&](const std::string& expected, std::string_view got) {
    return Error{ErrorCode::format, name + ": line " + std::to_string(line_number) + ": expected " +
                                        expected + ", got " + in_quotes(got)};
  };
  std::optional<double> gamma, rho;
  std::string_view type, kernel;
  bool vectors_follow = false;
  while (!text.empty() && !vectors_follow) {
    std::string_view line = next_line(text);
    ++line_number;
    const std::string_view key = next_word(line), value = next_word(line);
    if (key == "SV") {
      vectors_follow = true;
    } else if (key == "svm_type") {
      type = value;
    } else if (key == "kernel_type") {
      kernel = value;
    } else if (key == "gamma" || key == "rho") {
      std::optional<double>& field = key == "gamma" ? gamma : rho;
      field = number(value);
      if (!field) return error("a number for " + std::string(key), value);
    } else if (key != "nr_class" && key != "total_sv") {
      return error("a field of a support-vector model", key);
    }
  }
  if (!vectors_follow || !gamma || !rho) {
    return Error{ErrorCode::format, name + ": expected gamma, rho and SV of a support-vector model, got " +
                                        std::to_string(line_number) + " lines without them"};
  }
  if ((type != "nu_svr" && type != "epsilon_svr") || kernel != "rbf") {
    return Error{ErrorCode::unsupported,
                 name + ": expected support-vector regression (nu_svr) with kernel rbf, got " +
                     in_quotes(type) + " with " + in_quotes(kernel)};
  }
  model.gamma_ = *gamma;
  model.rho_ = *rho;
  std::vector<std::vector<Entry>> rows;
  while (!text.empty()) {
    std::string_view line = next_line(text);
    ++line_number;
    const std::string_view first = next_word(line);
    if (first.empty()) continue;
    const std::optional<double> weight = number(first);
    if (!weight) return error("the weight of a support vector", first);
    model.weights_.push_back(*weight);
    std::vector<Entry>& row = rows.emplace_back();
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
      const std::optional<Entry> next = entry(word);
      if (!next) return error("index:value with an index of 1 to " + std::to_string(kMaxFeatures), word);
      row.push_back(*next);
      model.features_ = std::max(model.features_, next->index);
    }
  }
  if (rows.empty()) return Error{ErrorCode::format, name + ": expected support vectors, got none"};
  model.vectors_.assign(rows.size() * model.features_, 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const Entry& e : rows[i]) model.vectors_[i * model.features_ + e.index - 1] = e.value;
  }
  return model;
}

double SvrModel::predict(std::span<const double> features) const {
  double sum = -rho_, beyond = 0;
  for (std::size_t j = features_; j < features.size(); ++j) beyond += features[j] * features[j];
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    double distance = beyond;
    for (std::size_t j = 0; j < features_; ++j) {
      const double difference = vectors_[i * features_ + j] - (j < features.size() ? features[j] : 0.0);
      distance += difference * difference;
    }
    sum += weights_[i] * exact_exp(-gamma_ * distance);
  }
  return sum;
}

}  // namespace tessera::metrics
