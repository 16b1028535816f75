// Any bytes as a safetensors file: no crash, and whatever is accepted survives being written and read again.
#include <cstdlib>

#include "core/safetensors.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace tessera;
  const auto file = SafeTensors::parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file) return 0;
  std::vector<NamedTensor> tensors;
  for (const std::string& name : (*file)->names()) {
    const auto view = (*file)->find(name);
    require(view.has_value());
    const auto values = to_f32(*view);
    require(!values || static_cast<std::int64_t>(values->size()) == view->shape.size());
    tensors.push_back({name, view->dtype, view->shape, view->bytes});
  }
  std::vector<std::byte> out;
  const auto done = write_safetensors(
      [&out](std::span<const std::byte> bytes) {
        out.insert(out.end(), bytes.begin(), bytes.end());
        return Result<void>();
      },
      tensors, (*file)->metadata());
  require(bool(done));
  const auto again = SafeTensors::parse(out, "again");
  require(again && (*again)->names().size() == tensors.size() && (*again)->metadata() == (*file)->metadata());
  return 0;
}
