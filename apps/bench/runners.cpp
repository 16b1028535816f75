// One parser per first word, in a table; a field that is a list of numbers is one wherever it stands, so that
// "tessera:8" needs no empty field for the model.
#include "apps/bench/runners.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "apps/bench/codec2_runner.h"
#include "apps/bench/external_runner.h"
#include "apps/bench/ffmpeg_runner.h"
#include "apps/bench/identity_runner.h"
#include "apps/bench/opus_runner.h"
#include "apps/bench/runner_names.h"
#include "apps/bench/speex_runner.h"
#include "apps/bench/tessera_runner.h"

namespace tessera::bench {
namespace {

using Made = Result<std::unique_ptr<CodecRunner>>;
using Fields = std::span<const std::string>;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == separator) {
      parts.back() += text[++i];
    } else if (text[i] == separator) {
      parts.emplace_back();
    } else {
      parts.back() += text[i];
    }
  }
  return parts;
}

/// The numbers of "6,12"; nothing for anything else.
template <class Number>
std::optional<std::vector<Number>> numbers(const std::string& list) {
  std::vector<Number> values;
  for (const std::string& part : split(list, ',')) {
    Number value{};
    const char* end = part.data() + part.size();
    const auto parsed = std::from_chars(part.data(), end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
    values.push_back(value);
  }
  return values;
}

Error unexpected(const std::string& spec, const std::string& words, const std::string& field) {
  return {ErrorCode::usage, spec + ": expected " + words + ", got '" + field + "'"};
}

Made make_identity(const std::string& spec, const std::string& name, Fields fields,
                   const CodecChoice& choice) {
  if (!fields.empty()) return unexpected(spec, choice.words, fields.front());
  return make_identity_runner(name.empty() ? "identity" : name);
}

std::optional<WeightType> precision(const std::string& field) {
  constexpr std::array<std::pair<const char*, WeightType>, 3> kNames{
      {{"f32", WeightType::f32}, {"bf16", WeightType::bf16}, {"int8", WeightType::i8}}};
  for (const auto& [name, type] : kNames) {
    if (field == name) return type;
  }
  return std::nullopt;
}

Made make_tessera(const std::string& spec, const std::string& name, Fields fields,
                  const CodecChoice& choice) {
  TesseraOptions options;
  options.name = name;
  for (const std::string& field : fields) {
    if (auto list = numbers<int>(field)) {
      options.codebooks = *std::move(list);
    } else if (const auto type = precision(field)) {
      options.precision = *type;
    } else if (&field == &fields.front()) {
      options.model = field;
    } else {
      return unexpected(spec, choice.words, field);
    }
  }
  return make_tessera_runner(options);
}

Made make_opus(const std::string& spec, const std::string& name, Fields fields, const CodecChoice& choice) {
  OpusOptions options;
  options.name = name;
  for (const std::string& field : fields) {
    if (auto list = numbers<double>(field)) {
      options.kbps = *std::move(list);
    } else if (field == "audio" || field == "voip") {
      options.application = field == "audio" ? OpusApplication::audio : OpusApplication::voip;
    } else {
      return unexpected(spec, choice.words, field);
    }
  }
  return make_opus_runner(options);
}

Made make_codec2(const std::string& spec, const std::string& name, Fields fields, const CodecChoice& choice) {
  if (fields.size() > 1) return unexpected(spec, choice.words, fields[1]);
  Codec2Options options;
  options.name = name;
  if (!fields.empty()) options.modes = split(fields.front(), ',');
  return make_codec2_runner(options);
}

Made make_speex(const std::string& spec, const std::string& name, Fields fields, const CodecChoice& choice) {
  SpeexOptions options;
  options.name = name;
  if (!fields.empty()) {
    auto list = numbers<int>(fields.front());
    if (!list || fields.size() > 1) return unexpected(spec, choice.words, fields.back());
    options.qualities = *std::move(list);
  }
  return make_speex_runner(options);
}

Made make_ffmpeg(const std::string& spec, const std::string& name, Fields fields, const CodecChoice& choice) {
  if (fields.size() > 2) return unexpected(spec, choice.words, fields[2]);
  FfmpegOptions options;
  options.name = name;
  if (!fields.empty()) options.encoder = fields[0];
  if (fields.size() == 2) options.kbps = split(fields[1], ',');
  return make_ffmpeg_runner(options);
}

Made make_external(const std::string& spec, const std::string& name, Fields fields,
                   const CodecChoice& choice) {
  if (fields.size() < 3 || fields.size() > 4) {
    return Error{ErrorCode::usage, spec + ": expected " + choice.words +
                                       " (a colon within a field is \\:), got " +
                                       std::to_string(fields.size()) + " fields behind the first word"};
  }
  ExternalOptions options;
  options.name = name.empty() ? fields[0] : name;
  options.encode = fields[1];
  options.decode = fields[2];
  if (fields.size() == 4) options.points = split(fields[3], ',');
  return make_external_runner(options);
}

struct Kind {
  CodecChoice choice;
  Made (*make)(const std::string& spec, const std::string& name, Fields fields, const CodecChoice& choice);
};

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  const auto add = [&all](const char* name, const char* words, const char* description, std::string absence,
                          auto make) {
    CodecChoice choice;
    choice.name = name;
    choice.words = words;
    choice.description = description;
    choice.absence = std::move(absence);
    all.push_back({std::move(choice), make});
  };
  add("tessera", "tessera[:MODEL][:CODEBOOKS,...][:f32|bf16|int8]",
      "the built-in model, or a weights file of any family; every number of codebooks", "", make_tessera);
  add("opus", "opus[:voip|audio][:KBPS,...]", "Opus: 6, 9, 12, 16, 24 kbps", opus_absence(), make_opus);
  add("codec2", "codec2[:MODE,...]", "Codec 2: modes 700C, 1300, 2400, 3200", codec2_absence(), make_codec2);
  add("speex", "speex[:QUALITY,...]", "Speex wideband: qualities 2, 4, 6, 8", speex_absence(), make_speex);
  add("ffmpeg", "ffmpeg:ENCODER[:KBPS,...]", "an encoder of the ffmpeg command", "", make_ffmpeg);
  add("external", "external:NAME:ENCODE:DECODE[:POINT,...]",
      "two lines of the shell with {input}, {output} and {point}", "", make_external);
  add("identity", "identity", "16-bit PCM: the recording itself", "", make_identity);
  return all;
}

Result<void> check_points(const CodecRunner& runner) {
  std::vector<std::string> names;
  for (OperatingPoint& point : runner.points()) {
    if (std::find(names.begin(), names.end(), point.name) != names.end()) {
      return Error{ErrorCode::usage, runner.name() + ": the point '" + point.name + "' is there twice"};
    }
    names.push_back(std::move(point.name));
  }
  return {};
}

}  // namespace

std::vector<CodecChoice> codec_choices() {
  std::vector<CodecChoice> choices;
  for (Kind& kind : kinds()) choices.push_back(std::move(kind.choice));
  return choices;
}

Made make_runner(const std::string& spec) {
  std::vector<std::string> fields = split(spec, ':');
  std::string name;
  if (const auto equals = fields[0].find('='); equals != std::string::npos) {
    name = fields[0].substr(0, equals);
    fields[0].erase(0, equals + 1);
    if (auto checked = check_name(name); !checked) return checked.error();
  }
  std::string there;
  for (const Kind& kind : kinds()) {
    if (kind.choice.name == fields[0]) {
      auto made = kind.make(spec, name, Fields(fields).subspan(1), kind.choice);
      if (!made) return made;
      if (auto distinct = check_points(**made); !distinct) return distinct.error();
      return made;
    }
    there += (there.empty() ? "" : ", ") + kind.choice.name;
    if (!kind.choice.absence.empty()) there += " (" + kind.choice.absence + ")";
  }
  return Error{ErrorCode::usage, "expected a codec, one of " + there + "; got '" + spec + "'"};
}

Result<std::vector<std::unique_ptr<CodecRunner>>> make_runners(std::span<const std::string> specs) {
  std::vector<std::unique_ptr<CodecRunner>> runners;
  for (const std::string& spec : specs) {
    auto made = make_runner(spec);
    if (!made) return made.error();
    const std::string name = (*made)->name();
    if (std::any_of(runners.begin(), runners.end(), [&name](const auto& r) { return r->name() == name; })) {
      return Error{ErrorCode::usage,
                   "two codecs are called " + name + ": name one of them, as in other=" + spec};
    }
    runners.push_back(*std::move(made));
  }
  return runners;
}

}  // namespace tessera::bench
