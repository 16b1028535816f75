// A program outside the source tree, as a user of the installed library writes it: the built-in codec, no
// file.
#include <cstdio>

#include "codec/codec.h"

int main() {
  auto codec = tessera::Codec::builtin();
  if (!codec) {
    std::fprintf(stderr, "%s\n", codec.error().message.c_str());
    return 1;
  }
  std::printf("family %s\n", (*codec)->info().family.c_str());
}
