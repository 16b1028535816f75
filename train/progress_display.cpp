// The block is redrawn by "cursor up" and "erase to the end"; its lines are cut to the terminal's width,
// since a wrapped line would spoil the count.
#include "train/progress_display.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cmath>

#include "train/text.h"

namespace tessera::train {
namespace {

std::string speed_and_rest(const TrainingStatus& status, double steps_per_s) {
  if (!(steps_per_s > 0)) return "";
  const double left = static_cast<double>(std::max<std::int64_t>(0, status.steps - status.step));
  return ", " + rounded(steps_per_s) + " steps/s, " + rounded(steps_per_s * status.audio_s) +
         " s of audio per second, " + clock_time(left / steps_per_s) + " left";
}

std::string position(const TrainingStatus& status) {
  return "step " + std::to_string(status.step) + " of " + std::to_string(status.steps);
}

std::string losses_of(const TrainingStatus& status) {
  std::string line;
  for (const auto& [name, value] : status.losses)
    line += (line.empty() ? "" : "  ") + name + " " + rounded(value);
  return line;
}

std::string health(const TrainingStatus& status) {
  const auto [least, most] = std::ranges::minmax_element(status.codebooks, {}, &CodebookHealth::perplexity);
  std::int64_t unused = 0;
  for (const CodebookHealth& codebook : status.codebooks) unused += codebook.unused;
  const std::int64_t codewords = static_cast<std::int64_t>(status.codebooks.size()) * status.codebook_size;
  return "perplexity " + fixed(least->perplexity, 0) + " to " + fixed(most->perplexity, 0) + " of " +
         std::to_string(status.codebook_size) + ", " + std::to_string(unused) + " of " +
         std::to_string(codewords) + " codewords unused";
}

int width_of(std::FILE* stream) {
  winsize size{};
  const bool known = ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace

std::vector<std::string> status_block(const TrainingStatus& status, double steps_per_s) {
  const double part =
      100.0 * static_cast<double>(status.step) / static_cast<double>(std::max<std::int64_t>(1, status.steps));
  std::vector<std::string> lines;
  lines.push_back(position(status) + " (" + fixed(std::floor(part), 0) + " %)" +
                  speed_and_rest(status, steps_per_s));
  if (!status.losses.empty())
    lines.push_back("  " + losses_of(status) + "  lr " + rounded(status.learning_rate));
  if (!status.codebooks.empty()) lines.push_back("  " + health(status));
  if (!status.note.empty()) lines.push_back("  " + status.note);
  return lines;
}

std::string status_line(const TrainingStatus& status, double steps_per_s) {
  std::string line = position(status) + speed_and_rest(status, steps_per_s);
  if (!status.losses.empty()) line += ": " + losses_of(status);
  if (!status.codebooks.empty()) line += "; " + health(status);
  return line;
}

void ProgressDisplay::measure(std::int64_t step) {
  constexpr double kMemory_s = 30;
  const Clock::time_point now = Clock::now();
  if (measured_ && step > measured_->first) {
    const double seconds = std::chrono::duration<double>(now - measured_->second).count();
    if (seconds < 0.05) return;  // together with the next steps
    const double rate = static_cast<double>(step - measured_->first) / seconds;
    const double weight = steps_per_s_ > 0 ? seconds / (seconds + kMemory_s) : 1;
    steps_per_s_ += weight * (rate - steps_per_s_);
  }
  measured_.emplace(step, now);
}

void ProgressDisplay::update(const TrainingStatus& status, bool logged) {
  measure(status.step);
  if (!terminal_) {
    if (logged) print(status_line(status, steps_per_s_));
    return;
  }
  const Clock::time_point now = Clock::now();
  if (now < next_ && status.step < status.steps) return;
  next_ = now + std::chrono::milliseconds(250);
  clear();
  const std::size_t width = static_cast<std::size_t>(width_of(stream_)) - 1;
  std::string text;
  for (const std::string& line : status_block(status, steps_per_s_)) {
    text += line.substr(0, width) + "\n";
    ++shown_;
  }
  std::fputs(text.c_str(), stream_);
  std::fflush(stream_);
}

void ProgressDisplay::print(const std::string& line) {
  clear();
  std::fputs((line + "\n").c_str(), stream_);
  std::fflush(stream_);
  next_ = Clock::now();
}

void ProgressDisplay::clear() {
  if (shown_ == 0) return;
  std::fprintf(stream_, "\x1b[%dA\r\x1b[J", shown_);
  shown_ = 0;
  std::fflush(stream_);
}

}  // namespace tessera::train
