// The owner of libsndfile's handle.
#pragma once

#include <sndfile.h>

#include <memory>

namespace tessera {

struct SndfileDeleter {
  void operator()(SNDFILE* p) const { sf_close(p); }
};
using SndfilePtr = std::unique_ptr<SNDFILE, SndfileDeleter>;

}  // namespace tessera
