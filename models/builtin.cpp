// Gives the bytes that models/builtin_data.S includes a C++ name.
#include "models/builtin.h"

extern "C" {
extern const std::byte tessera_builtin_begin[];
extern const std::byte tessera_builtin_end[];
}

namespace tessera {

std::span<const std::byte> builtin_model() {
  return {tessera_builtin_begin, tessera_builtin_end};
}

}  // namespace tessera
