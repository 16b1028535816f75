// Lines are written with one call each, so that those of several processes do not mix.
#include "apps/report.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

namespace tessera::app {
namespace {

// A message is one line, whatever a file name holds.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

void print(std::FILE* stream, const std::string& line) {
  const std::string text = line + "\n";
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

}  // namespace

Report::Report(std::string command, const ReportOptions& options)
    : command_(std::move(command)), options_(options) {}

bool Report::progress() const {
  return !options_.quiet && !options_.json && isatty(STDERR_FILENO) == 1;
}

void Report::error(const std::string& message) const {
  print(stderr, one_line("tessera: " + (command_.empty() ? "" : command_ + ": ") + message));
}

void Report::warning(const std::string& message) const {
  error("warning: " + message);
}

void Report::note(const std::string& message) {
  notes_.push_back(message);
  if (!options_.quiet) error("note: " + message);
}

std::size_t Report::notes(const std::vector<std::string>& messages, std::size_t from) {
  for (std::size_t i = from; i < messages.size(); ++i) note(messages[i]);
  return messages.size();
}

void Report::summary(Json object, const std::string& text) const {
  if (options_.json) {
    if (!notes_.empty()) object["notes"] = notes_;
    answer(object, text);
  } else if (!options_.quiet) {
    print(stderr, text);
  }
}

void Report::answer(const Json& object, const std::string& text) const {
  print(stdout, options_.json ? object.dump(2, ' ', false, Json::error_handler_t::replace) : text);
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string clock_time(double seconds) {
  const auto tenths = std::llround(seconds * 10);
  const long long hours = tenths / 36000;
  const long long minutes = tenths / 600 % 60;
  const double rest = static_cast<double>(tenths % 600) / 10;
  char text[64];
  if (hours > 0) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%04.1f", hours, minutes, rest);
  } else {
    std::snprintf(text, sizeof text, "%lld:%04.1f", minutes, rest);
  }
  return text;
}

}  // namespace tessera::app
