// The table behind the configuration: one entry per key, from which reading, writing and help are made.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "train/config.h"

namespace tessera::train {

/// One of several names, kept as an enum.
struct Choice {
  std::vector<std::string> names;
  std::function<std::size_t()> get;
  std::function<void(std::size_t)> set;
};

/// Where a value lies in the configuration.
using FieldValue = std::variant<int*, std::int64_t*, double*, bool*, std::string*, std::array<double, 2>*,
                                std::vector<int>*, std::vector<double>*, std::vector<std::string>*, Choice>;

/// What numbers are allowed, ends included; of a list: each of its elements.
struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

struct Field {
  std::string section;
  std::string key;
  FieldValue value;
  Range range = {};
  std::string help;
  bool required = false;
};

struct Section {
  std::string name;
  std::string help;
};

struct ConfigTable {
  std::vector<Section> sections = {};
  std::vector<Field> fields = {};  ///< section by section
};

/// The keys of `config`, in the order of the documentation; valid while it lives.
ConfigTable table_of(TrainConfig& config);

}  // namespace tessera::train
