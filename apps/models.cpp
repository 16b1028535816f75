// tessera models, tessera --version and help: what this program can do, without any input.
#include <nlohmann/json.hpp>
#include <string>

#include "apps/codec_source.h"
#include "apps/commands.h"
#include "apps/describe.h"
#include "codec/model.h"
#include "core/cpu.h"
#include "core/hash.h"

namespace tessera::app {

Result<ExitCode> run(const ModelsOptions&, Session& session) {
  const auto builtin = load_codec({}, CodecParts::none);
  if (!builtin) return builtin.error();
  Json all = Json::array();
  std::string text = codec_text((*builtin)->info()) + "\n\nfamilies of weights that --model takes:";
  for (const Family& family : families()) {
    all.push_back({{"name", family.name}, {"description", family.description}});
    text += "\n  " + std::string(family.name) + ": " + family.description;
  }
  session.report.answer({{"builtin", codec_json((*builtin)->info())}, {"families", all}}, text);
  return ExitCode::ok;
}

Result<ExitCode> run(const VersionOptions&, Session& session) {
  const auto builtin = load_codec({}, CodecParts::none);
  if (!builtin) return builtin.error();
  std::string targets;
  for (const std::string& target : available_cpu_targets()) targets += (targets.empty() ? "" : ", ") + target;
  const CodecInfo& info = (*builtin)->info();
  session.report.answer(
      {}, table({{"tessera", TESSERA_VERSION},
                 {"instruction set", cpu_target() + " (of " + targets + ")"},
                 {"built-in model", info.name + ", " + info.family + " " + hex(info.weights_hash)}}));
  return ExitCode::ok;
}

Result<ExitCode> run(const TextAnswer& answer, Session& session) {
  session.report.answer({}, answer.text.substr(0, answer.text.find_last_not_of('\n') + 1));
  return ExitCode::ok;
}

}  // namespace tessera::app
