// Examples: spectrograms side by side with players below them. Files and pictures are part of the page.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "apps/bench/html.h"
#include "apps/bench/recordings.h"
#include "apps/bench/report_parts.h"
#include "core/thread_pool.h"
#include "train/spectrogram_image.h"
#include "train/text.h"

namespace tessera::bench {
namespace {

Result<std::string> read_bytes(const std::string& path, std::int64_t most) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  if (failed) return Error{ErrorCode::io, path + ": " + failed.message()};
  if (size > static_cast<std::uintmax_t>(std::max<std::int64_t>(0, most))) {
    return Error{ErrorCode::unsupported, path + ": expected at most " + std::to_string(most) +
                                             " bytes to embed, got " + std::to_string(size)};
  }
  std::string bytes(static_cast<std::size_t>(size), '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) {
    return Error{ErrorCode::io, path + ": cannot be read"};
  }
  return bytes;
}

/// By what the file begins with; empty for what browsers may not play.
std::string media_type(const std::string& bytes) {
  if (bytes.starts_with("RIFF")) return "audio/wav";
  if (bytes.starts_with("fLaC")) return "audio/flac";
  if (bytes.starts_with("OggS")) return "audio/ogg";
  return "";
}

/// The lower half of a pair: `pcm` on the scale of `original`.
train::GrayImage on_scale_of(const Sound& original, const Sound& sound, ThreadPool& pool) {
  const train::SpectrogramOptions options;
  const train::GrayImage pair = train::spectrogram_pair(original.pcm, sound.pcm, pool, options);
  train::GrayImage image;
  image.width = pair.width;
  image.height = options.window / 2;
  const auto skipped = static_cast<std::ptrdiff_t>(pair.height - image.height) * pair.width;
  image.pixels.assign(pair.pixels.begin() + skipped, pair.pixels.end());
  return image;
}

/// Kbps and scores of this very recording.
std::string scores_of(const ReportData& data, const Example& example) {
  for (const ResultRow& row : data.results.rows) {
    if (row.recording != example.recording || row.codec != example.codec || row.point != example.point ||
        row.loss_rate > 0 || (!example.set.empty() && row.set != example.set)) {
      continue;
    }
    std::string text = train::fixed(row.kbps(), 2) + " kbps";
    for (const std::string& metric : data.results.metrics) {
      if (const double* score = score_of(row, metric)) text += "; " + metric + " " + train::rounded(*score);
    }
    return row.error.empty() ? text : text + "; " + row.error;
  }
  return "";
}

std::string path_of(const ReportData& data, const Example& example) {
  return (std::filesystem::path(data.options.folder) / example.path).string();
}

std::string name_of(const Example& example) {
  return example.codec.empty() ? "original" : example.codec + ", " + example.point;
}

Result<std::string> figure(const ReportData& data, const Example& example, const Sound* original,
                           ThreadPool& pool) {
  const std::string path = path_of(data, example);
  auto bytes = read_bytes(path, data.options.most_example_bytes);
  if (!bytes) return bytes.error();
  const std::string type = media_type(*bytes);
  if (type.empty()) {
    return Error{ErrorCode::unsupported, path + ": expected a WAV, FLAC or Ogg file"};
  }
  const auto sound = read_recording(path);
  if (!sound) return sound.error();
  const bool comparable =
      original && original->sample_rate_hz == sound->sample_rate_hz && !example.codec.empty();
  const auto image =
      comparable ? on_scale_of(*original, *sound, pool) : train::spectrogram_image(sound->pcm, pool);
  const std::string scale = "0 to " + train::rounded(sound->sample_rate_hz / 2000.0) + " kHz";
  const std::string name = html_text(name_of(example));
  return element("figure", element("figcaption", "<b>" + name + "</b>, " + scale + "<br><small>" +
                                                     html_text(scores_of(data, example)) + "</small>") +
                               "<img src=\"" + data_uri("image/png", train::encode_png(image)) +
                               "\" alt=\"spectrogram of " + name + "\">\n" +
                               element("audio", "",
                                       "controls preload=\"none\" src=\"" +
                                           data_uri(type, std::as_bytes(std::span(*bytes))) + "\""));
}

using Group = std::vector<const Example*>;

/// By recording, in the order in which recordings come; the original first.
std::vector<Group> by_recording(const std::vector<Example>& examples) {
  std::vector<Group> groups;
  for (const Example& example : examples) {
    const auto found = std::ranges::find_if(groups, [&](const Group& group) {
      return group.front()->recording == example.recording && group.front()->set == example.set;
    });
    if (found == groups.end()) {
      groups.push_back({&example});
    } else {
      found->push_back(&example);
    }
  }
  for (Group& group : groups) {
    std::stable_partition(group.begin(), group.end(),
                          [](const Example* example) { return example->codec.empty(); });
  }
  return groups;
}

}  // namespace

std::string examples_section(const ReportData& data, std::vector<LeftOut>& left_out) {
  ThreadPool pool;
  std::string text;
  for (const Group& group : by_recording(data.results.examples)) {
    std::optional<Sound> original;
    if (group.front()->codec.empty()) {
      if (auto sound = read_recording(path_of(data, *group.front()))) original = std::move(*sound);
    }
    std::string figures;
    for (const Example* example : group) {
      auto one = figure(data, *example, original ? &*original : nullptr, pool);
      if (one) {
        figures += *one;
      } else {
        LeftOut& lacking = left_out.emplace_back();
        lacking.what = "example " + example->recording + ", " + name_of(*example);
        lacking.reason = one.error().message;
      }
    }
    if (figures.empty()) continue;
    text += element("h3", html_text(group.front()->recording)) + element("div", figures, "class=\"charts\"");
  }
  if (text.empty()) return "";
  return element("p",
                 "Time to the right, frequency upward, 80 dB from black to white; what a codec made is drawn "
                 "on the "
                 "scale of its original where their sample rates agree.") +
         text;
}

}  // namespace tessera::bench
