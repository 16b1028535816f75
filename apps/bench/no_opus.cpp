// In the place of opus_runner.cpp where libopus or libogg is absent.
#include "apps/bench/opus_runner.h"

namespace tessera::bench {

Result<std::unique_ptr<CodecRunner>> make_opus_runner(const OpusOptions& /*options*/) {
  return Error{ErrorCode::unsupported, "opus: " + opus_absence()};
}

std::string opus_absence() {
  return "not built in: libopus or libogg was not found when tessera was built (Debian: libopus-dev, "
         "libogg-dev)";
}

}  // namespace tessera::bench
