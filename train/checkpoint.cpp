// The folder of a run's checkpoints: names, retention, fallback, and the background write.
#include "train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "core/error.h"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kEnding = ".safetensors";
constexpr std::size_t kDigits = 8;  // at least; more when needed

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kEnding)) return std::nullopt;
  if (name.size() < kPrefix.size() + kDigits + kEnding.size()) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kEnding.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

/// Names in a folder; none when it cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

/// Whether it is a file that AtomicFile left behind.
bool is_temporary(std::string_view name) {
  return name.starts_with(".tessera-") && name.ends_with(".tmp");
}

Checkpoint copy_of(const Checkpoint& checkpoint) {
  Checkpoint copy;
  copy.step = checkpoint.step;
  copy.metadata = checkpoint.metadata;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    Tensor values = Tensor::zeros(tensor.shape(), tensor.dtype());
    if (tensor.bytes()) std::memcpy(values.raw(), tensor.raw(), tensor.bytes());
    copy.tensors.emplace_back(name, std::move(values));
  }
  return copy;
}

/// Removes what need not be kept now that `newest` is whole.
void remove_old(const CheckpointOptions& options, std::int64_t newest) {
  std::vector<std::int64_t> steps = list_checkpoints(options.folder);
  std::erase_if(steps, [newest](std::int64_t step) { return step > newest; });
  const std::size_t keep = static_cast<std::size_t>(options.keep);
  for (std::size_t i = 0; i + keep < steps.size(); ++i) {
    if (options.keep_every > 0 && steps[i] % options.keep_every == 0) continue;
    std::error_code ignored;  // one file too many does no harm
    fs::remove(checkpoint_path(options.folder, steps[i]), ignored);
  }
}

}  // namespace

std::string checkpoint_path(const std::string& folder, std::int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return (fs::path(folder) / (std::string(kPrefix) + digits + std::string(kEnding))).string();
}

std::vector<std::int64_t> list_checkpoints(const std::string& folder) {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names_in(folder)) {
    if (const auto step = step_of(name)) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

Result<LatestCheckpoint> load_latest(const std::string& folder) {
  const std::vector<std::int64_t> steps = list_checkpoints(folder);
  if (steps.empty())
    return Error{ErrorCode::io, folder + ": expected checkpoints step-*.safetensors, got none"};
  LatestCheckpoint latest;
  for (std::size_t i = steps.size(); i-- > 0;) {
    latest.path = checkpoint_path(folder, steps[i]);
    auto checkpoint = read_checkpoint(latest.path);
    if (checkpoint && checkpoint->step == steps[i]) {
      latest.checkpoint = *std::move(checkpoint);
      return latest;
    }
    latest.messages.push_back(checkpoint ? latest.path + ": holds step " + std::to_string(checkpoint->step)
                                         : checkpoint.error().message);
  }
  std::string reasons;
  for (const std::string& message : latest.messages) reasons += (reasons.empty() ? "" : "; ") + message;
  return Error{ErrorCode::damaged, folder + ": no checkpoint is good: " + reasons};
}

Result<CheckpointWriter> CheckpointWriter::open(const CheckpointOptions& options, std::int64_t resumed_step,
                                                std::vector<std::string>& messages) {
  if (options.keep < 1) fail("checkpoints", "keep >= 1", std::to_string(options.keep));
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (error) return Error{ErrorCode::io, "cannot make the folder " + options.folder + ": " + error.message()};
  for (const std::string& name : names_in(options.folder)) {
    const fs::path path = fs::path(options.folder) / name;
    const auto step = step_of(name);
    if (is_temporary(name)) {
      fs::remove(path, error);
      if (!error) messages.push_back("removed " + path.string() + ", left by a run that was stopped");
    } else if (step && *step > resumed_step) {
      const std::string aside = path.string() + ".superseded";
      fs::rename(path, aside, error);
      if (!error)
        messages.push_back(path.string() + " is after step " + std::to_string(resumed_step) + ": now " +
                           aside);
    }
    if (error) return Error{ErrorCode::io, "cannot tidy " + path.string() + ": " + error.message()};
  }
  return CheckpointWriter(options);
}

Result<void> CheckpointWriter::save(const Checkpoint& checkpoint) {
  Result<void> before = wait();
  pending_ =
      std::async(std::launch::async, [options = options_, copy = copy_of(checkpoint)]() -> Result<void> {
        auto written = write_checkpoint(checkpoint_path(options.folder, copy.step), copy);
        if (written) remove_old(options, copy.step);
        return written;
      });
  return before;
}

Result<void> CheckpointWriter::wait() {
  if (!pending_.valid()) return {};
  return pending_.get();
}

}  // namespace tessera::train
