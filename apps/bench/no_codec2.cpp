// In the place of codec2_runner.cpp where libcodec2 is absent.
#include "apps/bench/codec2_runner.h"

namespace tessera::bench {

Result<std::unique_ptr<CodecRunner>> make_codec2_runner(const Codec2Options& /*options*/) {
  return Error{ErrorCode::unsupported, "codec2: " + codec2_absence()};
}

std::string codec2_absence() {
  return "not built in: libcodec2 was not found when tessera was built (Debian: libcodec2-dev)";
}

}  // namespace tessera::bench
