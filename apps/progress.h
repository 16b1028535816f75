// The line that a long run shows on a terminal: percent, seconds of audio per second, time left.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace tessera::app {

class Progress {
 public:
  /// Shows nothing unless `enabled`, and nothing in the first second.
  Progress(std::string verb, bool enabled);
  /// Takes the line away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done_s` seconds of audio are done, of `total_s` if that is known. Cheap enough for every block.
  void update(double done_s, std::optional<double> total_s);
  /// Takes the line away, before other lines are printed.
  void clear();
  /// Wall seconds since construction.
  double elapsed_s() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::string verb_;
  bool enabled_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + std::chrono::seconds(1);
};

/// What the line says: "encoding  37 %, 81.2 s of audio per second, 0:12.0 left".
std::string progress_line(const std::string& verb, double done_s, std::optional<double> total_s,
                          double elapsed_s);

}  // namespace tessera::app
