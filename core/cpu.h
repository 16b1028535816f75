// Which instruction set the kernels use. The environment variable TESSERA_CPU=scalar|sse4|avx2|avx512|neon
// holds them to one (all give the same bits; the choice is for tests and for measuring).
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace tessera {

/// Instruction sets that this build has and this CPU runs, best first.
std::vector<std::string> available_cpu_targets();
/// The one in use.
std::string cpu_target();
/// Holds every kernel to `name` from now on ("" lifts that). Not to be called while other threads compute.
Result<void> set_cpu_target(const std::string& name);
/// Applies TESSERA_CPU if it is set; programs call it at start.
Result<void> set_cpu_target_from_environment();

}  // namespace tessera
