// The metrics of a run as a CSV file: one row per step that was logged. A run that is resumed cuts off what
// came after its checkpoint, so that its log equals that of a run never stopped.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"

namespace tessera::train {

/// Values by name, as a step gives them.
using Metrics = std::vector<std::pair<std::string, double>>;

/// A log in memory. Cells without a value are NaN.
struct MetricsTable {
  std::vector<std::string> columns = {};         ///< without the first, `step`
  std::vector<std::int64_t> steps = {};          ///< of the rows, increasing
  std::vector<std::vector<double>> values = {};  ///< [row][column]
};

/// Reads a log. A last row without its end (the writer was killed) is left out. Errors: io, format (with the
/// line).
Result<MetricsTable> read_metrics(const std::string& path);

class MetricsLog {
 public:
  /// Opens `path` for appending; a new file gets the header. Of an existing one the rows after
  /// `resumed_step` go (the file is replaced as a whole). Errors: io; format; mismatch (other columns).
  /// Throws UsageError for a name that is empty, `step`, twice or holds a comma, quote or line break.
  static Result<MetricsLog> open(const std::string& path, std::vector<std::string> columns,
                                 std::int64_t resumed_step);

  MetricsLog(MetricsLog&& other) noexcept;
  MetricsLog& operator=(MetricsLog&& other) noexcept;
  ~MetricsLog();

  const std::vector<std::string>& columns() const { return columns_; }

  /// Appends a row with one write; columns without a value stay empty. Throws UsageError for a name that is
  /// no column and a step not after the last. Error io.
  Result<void> append(std::int64_t step, const Metrics& metrics);

 private:
  MetricsLog() = default;

  std::string path_;
  std::vector<std::string> columns_;
  std::int64_t last_step_ = -1;
  int fd_ = -1;
};

}  // namespace tessera::train
