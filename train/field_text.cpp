#include "train/field_text.h"

#include <cmath>

#include "core/untrusted.h"
#include "train/text.h"

namespace tessera::train {
namespace {

std::string number(double value) {
  const bool whole = std::abs(value) < 1e16 && value == std::floor(value);
  return whole ? fixed(value, 0) : shortest(value);
}

struct InWords {
  const Range& range;

  std::string limits() const {
    const bool least = std::isfinite(range.least), most = std::isfinite(range.most);
    if (least && most) return " from " + number(range.least) + " to " + number(range.most);
    if (least) return ", " + number(range.least) + " or more";
    return most ? ", at most " + number(range.most) : "";
  }
  std::string operator()(const int*) const { return "a whole number" + limits(); }
  std::string operator()(const std::int64_t*) const { return "a whole number" + limits(); }
  std::string operator()(const double*) const { return "a number" + limits(); }
  std::string operator()(const bool*) const { return "true or false"; }
  std::string operator()(const std::string*) const { return "a text"; }
  std::string operator()(const std::array<double, 2>*) const { return "a pair of numbers" + limits(); }
  std::string operator()(const std::vector<int>*) const { return "a list of whole numbers" + limits(); }
  std::string operator()(const std::vector<double>*) const { return "a list of numbers" + limits(); }
  std::string operator()(const std::vector<std::string>*) const { return "a list of texts"; }
  std::string operator()(const Choice& choice) const {
    std::string text;
    for (std::size_t i = 0; i < choice.names.size(); ++i) {
      const bool last = i + 1 == choice.names.size();
      text += (i == 0 ? "" : last ? " or " : ", ") + in_quotes(choice.names[i]);
    }
    return text;
  }
};

}  // namespace

std::string expected(const Field& field) {
  return std::visit(InWords{field.range}, field.value);
}

}  // namespace tessera::train
