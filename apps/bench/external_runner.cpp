// Files instead of pipes: many programs seek in them or go by the ending, and the file's size is what counts.
#include "apps/bench/external_runner.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

#include "apps/bench/file_runner.h"
#include "apps/bench/process.h"
#include "apps/bench/runner_names.h"
#include "apps/bench/sound_files.h"
#include "core/hash.h"

namespace tessera::bench {
namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// The line with every placeholder replaced; what is put in is not looked at again.
std::string filled(const std::string& line, const std::string& input, const std::string& output,
                   const std::string& point) {
  const std::pair<std::string_view, const std::string*> placeholders[] = {
      {"{input}", &input}, {"{output}", &output}, {"{point}", &point}};
  std::string out;
  for (std::size_t at = 0; at < line.size();) {
    const auto rest = std::string_view(line).substr(at);
    const auto found = std::find_if(std::begin(placeholders), std::end(placeholders),
                                    [rest](const auto& entry) { return rest.starts_with(entry.first); });
    if (found == std::end(placeholders)) {
      out += line[at++];
    } else {
      out += *found->second;
      at += found->first.size();
    }
  }
  return out;
}

/// The number that a setting starts with; else its place in the list.
double order_of(const std::string& setting, std::size_t index) {
  double value = 0;
  const auto parsed = std::from_chars(setting.data(), setting.data() + setting.size(), value);
  return parsed.ec == std::errc() ? value : static_cast<double>(index + 1);
}

class ExternalRunner : public FileRunner {
 public:
  explicit ExternalRunner(const ExternalOptions& options) : FileRunner(options.name), options_(options) {}

  std::string version() const override {
    if (!options_.version.empty()) return options_.version;
    const std::string lines = options_.encode + '\n' + options_.decode;
    return "commands " + hex(content_hash(std::as_bytes(std::span(lines))));
  }

  std::string recipe(const OperatingPoint& point) const override {
    const std::string coded = "CODED" + options_.coded_ending;
    return filled(options_.encode, "IN.wav", coded, point.setting) + "; " +
           filled(options_.decode, coded, "DECODED.wav", point.setting);
  }

  std::vector<OperatingPoint> points() const override {
    if (options_.points.empty()) return {{.name = "default", .nominal_kbps = 1, .setting = ""}};
    std::vector<OperatingPoint> points;
    for (const std::string& setting : options_.points) {
      points.push_back(
          {.name = setting, .nominal_kbps = order_of(setting, points.size()), .setting = setting});
    }
    return points;
  }

  int coded_rate_hz(const OperatingPoint& /*point*/, int sample_rate_hz) const override {
    return sample_rate_hz;
  }

  Result<CodedFile> encode(const OperatingPoint& point, std::span<const float> pcm,
                           int coded_rate_hz) const override {
    const auto folder = TempFolder::create();
    if (!folder) return folder.error();
    const std::string input = folder->file("input.wav"),
                      output = folder->file("coded" + options_.coded_ending);
    if (auto written = write_bytes(input, wav_bytes(pcm, coded_rate_hz)); !written) return written.error();
    const std::string line = filled(options_.encode, input, output, point.setting);
    const auto ran = run_shell(line, *folder, options_.timeout_s);
    if (!ran) return ran.error();
    auto bytes = read_bytes(output);
    if (!bytes) return Error{ErrorCode::io, "'" + line + "' left no file: " + bytes.error().message};
    CodedFile file;
    file.bytes = *std::move(bytes);
    file.seconds = ran->seconds;
    return file;
  }

  Result<DecodedFile> decode(const OperatingPoint& point, std::span<const std::byte> file,
                             int /*coded_rate_hz*/, LossTrace* /*loss*/) const override {
    const auto folder = TempFolder::create();
    if (!folder) return folder.error();
    const std::string input = folder->file("coded" + options_.coded_ending),
                      output = folder->file("decoded.wav");
    if (auto written = write_bytes(input, file); !written) return written.error();
    const std::string line = filled(options_.decode, input, output, point.setting);
    const auto ran = run_shell(line, *folder, options_.timeout_s);
    if (!ran) return ran.error();
    auto sound = read_sound(output);
    if (!sound) return Error{sound.error().code, "'" + line + "' left no sound: " + sound.error().message};
    DecodedFile decoded;
    decoded.pcm = std::move(sound->pcm);
    decoded.sample_rate_hz = sound->sample_rate_hz;
    decoded.seconds = ran->seconds;
    return decoded;
  }

 private:
  ExternalOptions options_;
};

Result<void> check(const ExternalOptions& options) {
  if (auto named = check_name(options.name); !named) return named;
  const auto problem = [&options](const std::string& what) {
    return Error{ErrorCode::usage, options.name + ": " + what};
  };
  for (const auto& [which, line] : {std::pair("encode", &options.encode), {"decode", &options.decode}}) {
    for (const char* placeholder : {"{input}", "{output}"}) {
      if (!contains(*line, placeholder)) {
        return problem("expected " + std::string(placeholder) + " in the line to " + which + ", got '" +
                       *line + "'");
      }
    }
  }
  const bool uses_point = contains(options.encode, "{point}");
  if (options.points.size() > 1 && !uses_point) {
    return problem("several points, but no {point} in the line to encode: '" + options.encode + "'");
  }
  if (options.points.empty() && (uses_point || contains(options.decode, "{point}"))) {
    return problem("expected a list of points for {point}, got none");
  }
  if (std::find(options.points.begin(), options.points.end(), "") != options.points.end()) {
    return problem("expected points, got an empty one");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<CodecRunner>> make_external_runner(const ExternalOptions& options) {
  if (auto checked = check(options); !checked) return checked.error();
  return std::unique_ptr<CodecRunner>(std::make_unique<ExternalRunner>(options));
}

}  // namespace tessera::bench
