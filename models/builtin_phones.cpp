// Gives the bytes that models/builtin_phones_data.S includes a C++ name.
#include "models/builtin.h"

extern "C" {
extern const std::byte tessera_phones_begin[];
extern const std::byte tessera_phones_end[];
}

namespace tessera {

std::span<const std::byte> builtin_phone_classifier() {
  return {tessera_phones_begin, tessera_phones_end};
}

}  // namespace tessera
