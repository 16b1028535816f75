// The command line as values: one struct per sub-command. options.cpp is the only file that knows the parser.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/report.h"
#include "codec/media.h"
#include "codec/tsr.h"
#include "core/gemm.h"
#include "core/result.h"

namespace tessera::app {

/// Which codec, and how it runs.
struct CodecOptions {
  std::string model;  ///< weights file; empty: the built-in one
  WeightType precision = WeightType::f32;
  int threads = 0;  ///< 0: all cores
};

struct EncodeOptions {
  std::string input, output;
  CodecOptions codec;
  int codebooks = 0;           ///< 0: all
  std::optional<double> kbps;  ///< instead of codebooks: as many as stay at or below this file rate
  ChannelMode mono = ChannelMode::keep;
  EntropyCoder coder = EntropyCoder::adaptive;
  ReportOptions report;
};

struct DecodeOptions {
  std::string input, output;
  CodecOptions codec;
  int codebooks = 0;  ///< decode only the first so many; 0: all. Of a .raw input: the number it has
  int channels = 1;   ///< of a .raw input
  SampleFormat bits = SampleFormat::pcm16;
  AudioFileType format = AudioFileType::by_name;
  ReportOptions report;
};

struct TokensOptions {
  std::string input, output;
  CodecOptions codec;
  int codebooks = 0;
  ChannelMode mono = ChannelMode::keep;
  ReportOptions report;
};

struct InfoOptions {
  std::string input;
  ReportOptions report;
};

struct ModelsOptions {
  ReportOptions report;
};

struct VersionOptions {
  ReportOptions report;
};

struct TrainOptions {
  std::string config, folder;  ///< of a new run
  std::string resume;          ///< folder of a run to go on with
  int steps = 0;               ///< 0: as configured
  bool default_config = false, help_config = false;
  ReportOptions report;
};

struct BenchOptions {
  std::vector<std::string> data;                     ///< folders of recordings
  std::string folder;                                ///< of the results
  std::vector<std::string> codecs, points, metrics;  ///< empty: a choice of its own
  std::string models;                                ///< folder of metric model files
  std::vector<std::string> alignments;               ///< files for phone_error
  std::vector<double> losses;                        ///< rates, besides none
  double burst = 1;
  int seed = 1;
  std::string anchor;  ///< codec to compare with; empty: the first
  int threads = 0;     ///< 0: all cores
  int limit = 0;       ///< recordings of a set; 0: all
  int examples = 3;
  bool cost = true;
  ReportOptions report;
};

/// Nothing to run: the text is the answer (help).
struct TextAnswer {
  std::string text;
  ReportOptions report;
};

using Command = std::variant<EncodeOptions, DecodeOptions, TokensOptions, InfoOptions, ModelsOptions,
                             TrainOptions, BenchOptions, VersionOptions, TextAnswer>;

struct CommandLine {
  std::string name;  ///< the sub-command, for messages; empty when it is not known
  Result<Command> command;
};

/// Errors (usage): an unknown option or command, a missing argument, a value out of its range.
CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace tessera::app
