// Redraws four times a second with a carriage return and "erase to the end of the line".
#include "apps/progress.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "apps/report.h"

namespace tessera::app {

Progress::Progress(std::string verb, bool enabled) : verb_(std::move(verb)), enabled_(enabled) {}

Progress::~Progress() {
  clear();
}

double Progress::elapsed_s() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Progress::update(double done_s, std::optional<double> total_s) {
  if (!enabled_ || Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::milliseconds(250);
  shown_ = true;
  std::fprintf(stderr, "\r%s\x1b[K", progress_line(verb_, done_s, total_s, elapsed_s()).c_str());
  std::fflush(stderr);
}

void Progress::clear() {
  if (!std::exchange(shown_, false)) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

std::string progress_line(const std::string& verb, double done_s, std::optional<double> total_s,
                          double elapsed_s) {
  const double speed = elapsed_s > 0 ? done_s / elapsed_s : 0;
  const std::string rate = fixed(speed, 1) + " s of audio per second";
  if (!total_s || *total_s <= 0) return verb + "  " + clock_time(done_s) + ", " + rate;
  const double part = std::clamp(done_s / *total_s, 0.0, 1.0);
  std::string line = verb + "  " + fixed(part * 100, 0) + " %, " + rate;
  if (speed > 0) line += ", " + clock_time(std::max(0.0, *total_s - done_s) / speed) + " left";
  return line;
}

}  // namespace tessera::app
