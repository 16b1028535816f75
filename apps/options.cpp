// CLI11 parses; values with names (mix, adaptive, f32 ...) are turned into enums here, so that a wrong one is
// answered with the list of right ones.
#include "apps/options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/option_helpers.h"

namespace tessera::app {
namespace {

void add_codec(CLI::App& app, CodecOptions& codec) {
  constexpr std::array<Choice<WeightType>, 3> kPrecisions{
      {{"f32", WeightType::f32}, {"bf16", WeightType::bf16}, {"int8", WeightType::i8}}};
  app.add_option("-m,--model", codec.model, "Weights file of the codec (default: the built-in speech codec)")
      ->type_name("FILE");
  add_choice(app, "--precision", codec.precision, kPrecisions,
             "How weights are kept in memory (default: f32)");
  add_count(app, "--threads", codec.threads, 0,
            "Threads; 0, the default: all cores. Any number gives the same result");
}

CLI::Option* add_mono(CLI::App& app, ChannelMode& mono) {
  constexpr std::array<Choice<ChannelMode>, 3> kModes{
      {{"mix", ChannelMode::mix}, {"left", ChannelMode::left}, {"right", ChannelMode::right}}};
  return add_choice(app, "--mono", mono, kModes,
                    "Code one channel (default: every channel as a stream of its own)");
}

CLI::App* add_encode(CLI::App& app, EncodeOptions& options) {
  constexpr std::array<Choice<EntropyCoder>, 2> kCoders{
      {{"pack", EntropyCoder::packed}, {"adaptive", EntropyCoder::adaptive}}};
  CLI::App* encode = app.add_subcommand("encode", "Code a recording into a .tsr file");
  encode->add_option("IN", options.input, "Media file, or - for a pipe")->required();
  encode->add_option("OUT", options.output, "File to write (.tsr), or - for a pipe")->required();
  auto* codebooks = add_count(*encode, "-n,--codebooks", options.codebooks, 1,
                              "Code with the first N codebooks (default: all)");
  encode
      ->add_option_function<double>(
          "--kbps",
          [&options](const double& kbps) {
            if (!(kbps > 0) || !std::isfinite(kbps))
              throw CLI::ValidationError("--kbps", "expected a rate above 0");
            options.kbps = kbps;
          },
          "Use as many codebooks as keep the file at or below this rate")
      ->type_name("X")
      ->excludes(codebooks);
  add_mono(*encode, options.mono);
  add_choice(*encode, "--coder", options.coder, kCoders, "Entropy coder (default: adaptive)");
  add_codec(*encode, options.codec);
  add_report(*encode, options.report, false);
  encode->footer(
      "Examples:\n"
      "  tessera encode talk.wav talk.tsr\n"
      "  tessera encode film.mkv film.tsr --kbps 6 --mono mix\n"
      "  arecord -f S16_LE -r 16000 -t wav | tessera encode - talk.tsr");
  return encode;
}

CLI::App* add_decode(CLI::App& app, DecodeOptions& options) {
  constexpr std::array<Choice<SampleFormat>, 3> kBits{
      {{"16", SampleFormat::pcm16}, {"24", SampleFormat::pcm24}, {"float", SampleFormat::float32}}};
  constexpr std::array<Choice<AudioFileType>, 2> kFormats{
      {{"wav", AudioFileType::wav}, {"flac", AudioFileType::flac}}};
  CLI::App* decode = app.add_subcommand("decode", "Turn a .tsr file or tokens into sound");
  decode->add_option("IN", options.input, ".tsr file, or - for a pipe; or tokens (.npy, .jsonl, .raw)")
      ->required();
  decode->add_option("OUT", options.output, "File to write (.wav, .flac), or - for a pipe")->required();
  add_count(*decode, "-n,--codebooks", options.codebooks, 1,
            "Decode only the first N codebooks; of .raw: how many it has (default: all)");
  add_count(*decode, "--channels", options.channels, 1, "Channels of a .raw input (default: 1)");
  add_choice(*decode, "--bits", options.bits, kBits, "Sample format (default: 16)");
  add_choice(*decode, "--format", options.format, kFormats,
             "File format (default: by the ending of OUT; a pipe: wav)");
  add_codec(*decode, options.codec);
  add_report(*decode, options.report, false);
  decode->footer(
      "Damaged parts of a .tsr file are concealed, each is reported, and the exit code is 7.\n"
      "Examples:\n"
      "  tessera decode talk.tsr talk.wav\n"
      "  tessera decode talk.tsr - | aplay\n"
      "  tessera decode tokens.npy talk.flac --bits 24");
  return decode;
}

CLI::App* add_tokens(CLI::App& app, TokensOptions& options) {
  CLI::App* tokens = app.add_subcommand("tokens", "Write the tokens of a recording or a .tsr file");
  tokens->add_option("IN", options.input, "Media file or .tsr file; - for a pipe with sound")->required();
  tokens
      ->add_option("OUT", options.output, "File to write: .npy (int32, [codebooks, frames]), .jsonl or .raw")
      ->required();
  add_count(*tokens, "-n,--codebooks", options.codebooks, 1, "Only the first N codebooks (default: all)");
  add_mono(*tokens, options.mono);
  add_codec(*tokens, options.codec);
  add_report(*tokens, options.report, false);
  tokens->footer(
      "Examples:\n"
      "  tessera tokens talk.wav talk.npy\n"
      "  tessera tokens talk.tsr talk.jsonl --codebooks 4");
  return tokens;
}

CLI::App* add_info(CLI::App& app, InfoOptions& options) {
  CLI::App* info =
      app.add_subcommand("info", "Say what a file is: .tsr, weights (.safetensors), tokens or media");
  info->add_option("FILE", options.input, "File to look at")->required();
  add_report(*info, options.report, true);
  info->footer("Examples:\n  tessera info talk.tsr\n  tessera info model.safetensors --json");
  return info;
}

CLI::App* add_models(CLI::App& app, ModelsOptions& options) {
  CLI::App* models = app.add_subcommand(
      "models", "List the built-in model, its rates and the families of weights that load");
  add_report(*models, options.report, true);
  models->footer("Examples:\n  tessera models\n  tessera models --json");
  return models;
}

// What CLI11 says, in one line and beginning small.
std::string reason_of(const CLI::ParseError& error) {
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.starts_with("The following")) text[0] = 't';
  return text;
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CLI::App app("Neural audio codecs as exact streams: sound to tokens to sound.", "tessera");
  EncodeOptions encode;
  DecodeOptions decode;
  TokensOptions tokens;
  InfoOptions info;
  ModelsOptions models;
  TrainOptions train;
  BenchOptions bench;
  bool version = false;
  const std::vector<std::pair<CLI::App*, std::function<Command()>>> commands{
      {add_encode(app, encode), [&] { return Command(encode); }},
      {add_decode(app, decode), [&] { return Command(decode); }},
      {add_tokens(app, tokens), [&] { return Command(tokens); }},
      {add_info(app, info), [&] { return Command(info); }},
      {add_models(app, models), [&] { return Command(models); }},
      {add_train(app, train), [&] { return Command(train); }},
      {add_bench(app, bench), [&] { return Command(bench); }},
  };
  app.require_subcommand(0, 1);
  app.add_flag("--version", version, "Print version, instruction set and the built-in model");
  app.footer(
      "tessera COMMAND --help shows the options and examples of a command.\n"
      "TESSERA_CPU=scalar|sse4|avx2|avx512|neon holds the kernels to one instruction set; all give the same "
      "bits.");

  std::string name, names;
  for (const auto& entry : commands) names += (names.empty() ? "" : ", ") + entry.first->get_name();
  const auto usage = [&](const std::string& reason) {
    return CommandLine{name, Error{ErrorCode::usage, reason}};
  };
  if (argc == 2 && argv[1] == std::string("help")) return {"", Command(TextAnswer{app.help(), {}})};
  if (argc > 1 && argv[1][0] != '-' && !names.empty()) {
    const bool known = std::any_of(commands.begin(), commands.end(),
                                   [&](const auto& entry) { return entry.first->get_name() == argv[1]; });
    if (!known) return usage("unknown command " + std::string(argv[1]) + ", expected one of " + names);
    name = argv[1];
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    CLI::App* asked = &app;
    while (!asked->get_subcommands().empty()) asked = asked->get_subcommands().front();
    return {name, Command(TextAnswer{asked->help(), {}})};
  } catch (const CLI::ParseError& error) {
    return usage(reason_of(error) + (name.empty() ? "" : " (tessera " + name + " --help shows the usage)"));
  }
  if (version) return {name, Command(VersionOptions{})};
  for (const auto& [command, options] : commands) {
    if (command->parsed()) return {name, options()};
  }
  return usage("expected a command, one of " + names + " (tessera --help shows more)");
}

}  // namespace tessera::app
