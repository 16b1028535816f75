// The codecs of the suite by the words of a command line: "opus:6,12", "tessera:model.safetensors:8",
// "external:NAME:ENCODE:DECODE:POINTS". docs/benchmark-codecs.md lists the words.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/bench/codec_runner.h"
#include "core/result.h"

namespace tessera::bench {

/// A codec that can be asked for.
struct CodecChoice {
  std::string name = {};         ///< its first word: "opus"
  std::string words = {};        ///< what may follow: "opus[:voip|audio][:KBPS,...]"
  std::string description = {};  ///< one line
  std::string absence = {};      ///< why it is not there; empty: it is
};

/// All of them. ffmpeg's encoders, and which of them are there, are the business of ffmpeg_encoders().
std::vector<CodecChoice> codec_choices();

/// One codec. Fields are separated by ':', and "\:" is a colon within one; "NAME=" before the first word
/// names it. Errors: usage (with what there is), unsupported (not built in, or no such program), those of
/// loading a model.
Result<std::unique_ptr<CodecRunner>> make_runner(const std::string& spec);

/// Several, of different names. Errors also: usage (two of one name).
Result<std::vector<std::unique_ptr<CodecRunner>>> make_runners(std::span<const std::string> specs);

}  // namespace tessera::bench
