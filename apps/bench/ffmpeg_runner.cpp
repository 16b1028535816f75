// One thread, the smallest container that holds the codec, no tags. ffmpeg itself takes the sound to a rate
// that the encoder supports; an encoder that cannot go as low as it is told takes its lowest bitrate, and the
// file shows it.
#include "apps/bench/ffmpeg_runner.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <utility>

#include "apps/bench/external_runner.h"
#include "apps/bench/process.h"
#include "apps/bench/runner_names.h"

namespace tessera::bench {
namespace {

struct Known {
  const char* name;
  const char* description;
  const char* kbps;     // by default
  const char* options;  // rate and whatever the encoder needs
  const char* format;   // of the file, for the muxer and the demuxer
  const char* reads;
};

constexpr std::array kKnown{
    Known{"libvo_amrwbenc", "AMR-WB", "6.6,8.85,12.65,15.85,23.85", "-ar 16000", "amr", "amr"},
    Known{"libopencore_amrnb", "AMR-NB", "4.75,5.9,7.95,12.2", "-ar 8000", "amr", "amr"},
    Known{"libmp3lame", "MP3 (LAME)", "8,16,24,32", "-write_xing 0 -id3v2_version 0", "mp3", "mp3"},
    Known{"aac", "AAC-LC (FFmpeg's own)", "12,16,24,32", "", "adts", "aac"},
    Known{"libfdk_aac", "AAC (Fraunhofer)", "12,16,24,32", "", "adts", "aac"},
    Known{"libvorbis", "Vorbis", "32,48,64", "", "ogg", "ogg"},
    Known{"libgsm", "GSM full rate", "13", "-ar 8000", "gsm", "gsm"},
    Known{"g722", "G.722", "64", "-ar 16000", "g722", "g722"},
};

/// What `ffmpeg -encoders` lists, one a line behind its flags. Error: it cannot be run.
Result<std::string> listing() {
  const auto folder = TempFolder::create();
  if (!folder) return folder.error();
  auto out = run_shell("ffmpeg -hide_banner -version && ffmpeg -hide_banner -encoders", *folder, 20);
  if (!out) return Error{ErrorCode::unsupported, "the ffmpeg command cannot be run here"};
  return std::move(out->out);
}

bool has(const std::string& listing, const std::string& encoder) {
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string flags, name;
    if (words >> flags >> name && flags.starts_with("A") && name == encoder) return true;
  }
  return false;
}

std::string absence(const Result<std::string>& listing, const std::string& encoder) {
  if (!listing) return listing.error().message;
  return has(*listing, encoder) ? "" : "this ffmpeg was built without " + encoder;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

bool is_bitrate(const std::string& text) {
  double kbps = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, kbps, std::chars_format::fixed);
  return parsed.ec == std::errc() && parsed.ptr == end && kbps > 0 && kbps <= 1000;
}

ExternalOptions commands(const Known& known, const FfmpegOptions& options) {
  const std::string quiet = "ffmpeg -v error -nostdin -y -threads 1 ";
  const std::string own = *known.options ? std::string(known.options) + " " : "";
  ExternalOptions external;
  external.name = options.name.empty() ? safe_name("ffmpeg_" + options.encoder) : options.name;
  external.encode = quiet + "-i {input} -ac 1 " + own + "-c:a " + known.name +
                    " -b:a {point}k -threads 1 -map_metadata -1 -fflags +bitexact -flags:a +bitexact -f " +
                    known.format + " {output}";
  external.decode = quiet + "-f " + known.reads + " -i {input} -c:a pcm_f32le -f wav {output}";
  external.points = options.kbps.empty() ? split(known.kbps) : options.kbps;
  return external;
}

}  // namespace

std::vector<FfmpegEncoder> ffmpeg_encoders() {
  const auto list = listing();
  std::vector<FfmpegEncoder> encoders;
  for (const Known& known : kKnown) {
    encoders.push_back(
        {.name = known.name, .description = known.description, .absence = absence(list, known.name)});
  }
  return encoders;
}

Result<std::unique_ptr<CodecRunner>> make_ffmpeg_runner(const FfmpegOptions& options) {
  const auto known = std::find_if(kKnown.begin(), kKnown.end(),
                                  [&options](const Known& entry) { return entry.name == options.encoder; });
  if (known == kKnown.end()) {
    std::string names;
    for (const Known& entry : kKnown) names += (names.empty() ? "" : ", ") + std::string(entry.name);
    return Error{ErrorCode::usage, "ffmpeg: expected one of the encoders " + names + ", got '" +
                                       options.encoder + "' (others: external:...)"};
  }
  const auto list = listing();
  if (const std::string reason = absence(list, options.encoder); !reason.empty()) {
    return Error{ErrorCode::unsupported, "ffmpeg:" + options.encoder + ": " + reason};
  }
  ExternalOptions external = commands(*known, options);
  for (const std::string& point : external.points) {
    if (!is_bitrate(point)) {
      return Error{ErrorCode::usage, external.name + ": expected bitrates in kbps, got '" + point + "'"};
    }
  }
  external.version = list->substr(0, list->find('\n'));
  return make_external_runner(external);
}

}  // namespace tessera::bench
