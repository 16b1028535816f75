// The codec families, in the order in which a file is tried.
#include "codec/encodec.h"
#include "codec/mimi.h"
#include "codec/model.h"
#include "codec/tessera_family.h"

namespace tessera {

std::span<const Family> families() {
  static const Family all[] = {tessera_family, mimi_family, encodec_family};
  return all;
}

}  // namespace tessera
