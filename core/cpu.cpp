// Names for Highway's run-time targets. The choice itself lives in Highway, whose dispatch tables read it per
// call.
#include "core/cpu.h"

#include <cstdlib>

#include "core/simd.h"
#include "hwy/highway.h"

namespace tessera {
namespace {

struct NamedTarget {
  const char* name;
  std::int64_t bits;
};

// Best first. The scalar target is always there: Highway's tables end with it whatever the CPU reports.
constexpr NamedTarget kTargets[] = {
#if HWY_ARCH_X86
    {"avx512", HWY_AVX3},
    {"avx2", HWY_AVX2},
    {"sse4", HWY_SSE4},
#elif HWY_ARCH_ARM
    {"neon", HWY_NEON},
#endif
    {"scalar", HWY_BASELINE_SCALAR},
};

// What this CPU runs. Asked once: hwy::SupportedTargets() also resets the choice as a side effect.
std::int64_t supported() {
  static const std::int64_t targets = hwy::SupportedTargets();
  return targets;
}

bool available(const NamedTarget& target) {
  return target.bits == HWY_BASELINE_SCALAR || (supported() & HWY_TARGETS & target.bits) != 0;
}

// The slot of the dispatch tables that `targets` leads to.
std::size_t table_index(std::int64_t targets) {
  hwy::ChosenTarget chosen;
  chosen.Update(targets);
  return chosen.GetIndex();
}

}  // namespace

std::vector<std::string> available_cpu_targets() {
  std::vector<std::string> names;
  for (const NamedTarget& target : kTargets) {
    if (available(target)) names.emplace_back(target.name);
  }
  return names;
}

std::string cpu_target() {
  const std::int64_t all = supported();
  if (!hwy::GetChosenTarget().IsInitialized()) hwy::GetChosenTarget().Update(all);
  const std::size_t chosen = hwy::GetChosenTarget().GetIndex();
  for (const NamedTarget& target : kTargets) {
    if (available(target) && table_index(target.bits) == chosen) return target.name;
  }
  return "scalar";
}

Result<void> set_cpu_target(const std::string& name) {
  if (name.empty()) {
    hwy::GetChosenTarget().Update(supported());
    return {};
  }
  std::string known;
  for (const NamedTarget& target : kTargets) {
    if (!available(target)) continue;
    if (name == target.name) {
      hwy::GetChosenTarget().Update(target.bits);
      return {};
    }
    known += (known.empty() ? "" : ", ") + std::string(target.name);
  }
  return Error{ErrorCode::usage, "this machine's instruction sets are " + known + "; got \"" + name + "\""};
}

Result<void> set_cpu_target_from_environment() {
  const char* name = std::getenv("TESSERA_CPU");
  if (name == nullptr) return {};
  Result<void> set = set_cpu_target(name);
  if (!set) return Error{ErrorCode::usage, "TESSERA_CPU: " + set.error().message};
  return {};
}

}  // namespace tessera
