// What a command tells its user: lines on stderr (errors, warnings, notes), the result on stdout for
// commands that answer a question, on stderr for those that write a file, as one JSON object on stdout for
// scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tessera::app {

/// Keys in the order they were added.
using Json = nlohmann::ordered_json;

struct ReportOptions {
  bool quiet = false;  ///< no notes, no progress, no summary; errors and warnings stay
  bool json = false;   ///< the result as one JSON object on stdout
};

class Report {
 public:
  Report(std::string command, const ReportOptions& options);

  bool json() const { return options_.json; }
  /// Whether a progress line may be shown: stderr is a terminal and nobody asked for silence.
  bool progress() const;

  /// `tessera: <command>: <message>` on stderr.
  void error(const std::string& message) const;
  /// Something is wrong with the data, the command goes on.
  void warning(const std::string& message) const;
  /// Something was done that was not asked for in so many words.
  void note(const std::string& message);
  /// The notes from index `from` on; returns how many there are: for a reader whose list grows.
  std::size_t notes(const std::vector<std::string>& messages, std::size_t from);
  /// What a command that writes a file did: `object` (the notes added) on stdout for --json, else `text` on
  /// stderr.
  void summary(Json object, const std::string& text) const;
  /// What a command that only answers has to say: `object` for --json, else `text`; on stdout either way.
  void answer(const Json& object, const std::string& text) const;

 private:
  std::string command_;
  ReportOptions options_;
  std::vector<std::string> notes_;
};

/// "1:02:03.5" or "2:03.5": a time in the input.
std::string clock_time(double seconds);
/// `value` with `digits` decimals.
std::string fixed(double value, int digits);

}  // namespace tessera::app
