#include "quantizers/quantizer.h"

#include <string>

#include "core/error.h"

namespace tessera {

void expect_codebooks(const Quantizer& quantizer, int count) {
  if (count < 1 || count > quantizer.codebooks()) {
    fail("quantizer", "1 to " + std::to_string(quantizer.codebooks()) + " codebooks", std::to_string(count));
  }
}

}  // namespace tessera
