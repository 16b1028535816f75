// Where a writer's bytes go: a file, a pipe, memory.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "core/result.h"

namespace tessera {

/// Takes all of the bytes or says why not (io).
using ByteSink = std::function<Result<void>(std::span<const std::byte>)>;

}  // namespace tessera
