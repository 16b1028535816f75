// What the sub-commands do once their options are known. Each reports its result; errors are left to the
// caller.
#pragma once

#include "apps/exit_code.h"
#include "apps/interrupt.h"
#include "apps/options.h"
#include "apps/report.h"
#include "core/result.h"

namespace tessera::app {

/// What a command runs with.
struct Session {
  Report& report;
  Interrupt& interrupt;
};

/// ok, or damaged when the output was written although part of the input is lost.
Result<ExitCode> run(const EncodeOptions& options, Session& session);
Result<ExitCode> run(const DecodeOptions& options, Session& session);
Result<ExitCode> run(const TokensOptions& options, Session& session);
Result<ExitCode> run(const InfoOptions& options, Session& session);
Result<ExitCode> run(const ModelsOptions& options, Session& session);
Result<ExitCode> run(const TrainOptions& options, Session& session);
/// damaged when a codec or a metric failed on a recording: all else was measured.
Result<ExitCode> run(const BenchOptions& options, Session& session);
Result<ExitCode> run(const VersionOptions& options, Session& session);
Result<ExitCode> run(const TextAnswer& answer, Session& session);

}  // namespace tessera::app
