#include "train/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/untrusted.h"
#include "train/text.h"

namespace tessera::train {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Error io_error(const std::string& what, const std::string& path) {
  return Error{ErrorCode::io, "cannot " + what + " " + path + ": " + std::strerror(errno)};
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t comma; (comma = line.find(',')) != std::string_view::npos; line.remove_prefix(comma + 1)) {
    cells.push_back(line.substr(0, comma));
  }
  cells.push_back(line);
  return cells;
}

template <class T>
bool read_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string header_line(const std::vector<std::string>& columns) {
  std::string line = "step";
  for (const std::string& column : columns) line += "," + column;
  return line + "\n";
}

std::string row_line(std::int64_t step, const std::vector<double>& values) {
  std::string line = std::to_string(step);
  for (const double value : values) line += "," + (std::isnan(value) ? "" : shortest(value));
  return line + "\n";
}

void check_columns(const std::vector<std::string>& columns) {
  std::set<std::string_view> seen{"step"};
  for (const std::string& column : columns) {
    const bool plain = !column.empty() && column.find_first_of(",\"\r\n") == std::string::npos;
    if (!plain || !seen.insert(column).second) {
      fail("metrics_log", "distinct names without comma, quote and line break", in_quotes(column));
    }
  }
}

Result<void> rewrite(const std::string& path, const MetricsTable& table) {
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  std::string text = header_line(table.columns);
  for (std::size_t i = 0; i < table.steps.size(); ++i) text += row_line(table.steps[i], table.values[i]);
  if (auto written = file->write(text); !written) return written;
  return file->commit();
}

}  // namespace

Result<MetricsTable> read_metrics(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return io_error("open", path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return io_error("read", path);
  MetricsTable table;
  std::string_view rest = text;
  for (int number = 1;; ++number) {
    const auto wrong = [&](const std::string& what) {
      return Error{ErrorCode::format, path + ": line " + std::to_string(number) + ": " + what};
    };
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      if (number == 1) return wrong("expected a header \"step,...\", got " + in_quotes(rest));
      return table;
    }
    const auto cells = split(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    if (number == 1) {
      if (cells[0] != "step") return wrong("expected a header \"step,...\", got " + in_quotes(cells[0]));
      table.columns.assign(cells.begin() + 1, cells.end());
      continue;
    }
    if (cells.size() != table.columns.size() + 1) {
      return wrong("expected " + std::to_string(table.columns.size() + 1) + " cells, got " +
                   std::to_string(cells.size()));
    }
    std::int64_t step = 0;
    if (!read_number(cells[0], step) || (!table.steps.empty() && step <= table.steps.back())) {
      return wrong("expected a step after the one before, got " + in_quotes(cells[0]));
    }
    std::vector<double> values;
    for (std::size_t i = 1; i < cells.size(); ++i) {
      double value = kNone;
      if (!cells[i].empty() && !read_number(cells[i], value)) {
        return wrong("expected a number or nothing, got " + in_quotes(cells[i]));
      }
      values.push_back(value);
    }
    table.steps.push_back(step);
    table.values.push_back(std::move(values));
  }
}

Result<MetricsLog> MetricsLog::open(const std::string& path, std::vector<std::string> columns,
                                    std::int64_t resumed_step) {
  check_columns(columns);
  MetricsTable table;
  table.columns = columns;
  if (std::filesystem::exists(path)) {
    auto before = read_metrics(path);
    if (!before) return before.error();
    if (before->columns != columns) {
      return Error{ErrorCode::mismatch, path + ": expected the columns " +
                                            in_quotes(header_line(columns).substr(0, 70)) + ", got " +
                                            in_quotes(header_line(before->columns).substr(0, 70))};
    }
    const auto kept = std::ranges::upper_bound(before->steps, resumed_step) - before->steps.begin();
    before->steps.resize(static_cast<std::size_t>(kept));
    before->values.resize(static_cast<std::size_t>(kept));
    table = *std::move(before);
  }
  if (auto written = rewrite(path, table); !written) return written.error();
  MetricsLog log;
  log.path_ = path;
  log.columns_ = std::move(columns);
  if (!table.steps.empty()) log.last_step_ = table.steps.back();
  log.fd_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (log.fd_ < 0) return io_error("open", path);
  return log;
}

MetricsLog::MetricsLog(MetricsLog&& other) noexcept {
  *this = std::move(other);
}

MetricsLog& MetricsLog::operator=(MetricsLog&& other) noexcept {
  if (this == &other) return *this;
  if (fd_ >= 0) close(fd_);
  path_ = std::move(other.path_);
  columns_ = std::move(other.columns_);
  last_step_ = other.last_step_;
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

MetricsLog::~MetricsLog() {
  if (fd_ >= 0) close(fd_);
}

Result<void> MetricsLog::append(std::int64_t step, const Metrics& metrics) {
  if (step <= last_step_) {
    fail("metrics_log", "a step after " + std::to_string(last_step_), std::to_string(step));
  }
  std::vector<double> values(columns_.size(), kNone);
  for (const auto& [name, value] : metrics) {
    const auto column = std::ranges::find(columns_, name);
    if (column == columns_.end()) fail("metrics_log", "a name among the columns", in_quotes(name));
    values[static_cast<std::size_t>(column - columns_.begin())] = value;
  }
  const std::string line = row_line(step, values);
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(fd_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("write", path_);
    done += static_cast<std::size_t>(n);
  }
  last_step_ = step;
  return {};
}

}  // namespace tessera::train
