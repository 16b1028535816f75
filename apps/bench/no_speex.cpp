// In the place of speex_runner.cpp where libspeex or libogg is absent.
#include "apps/bench/speex_runner.h"

namespace tessera::bench {

Result<std::unique_ptr<CodecRunner>> make_speex_runner(const SpeexOptions& /*options*/) {
  return Error{ErrorCode::unsupported, "speex: " + speex_absence()};
}

std::string speex_absence() {
  return "not built in: libspeex or libogg was not found when tessera was built (Debian: libspeex-dev, "
         "libogg-dev)";
}

}  // namespace tessera::bench
