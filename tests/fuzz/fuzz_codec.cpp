// Any bytes as the weights of a codec: as a whole file, and as the configuration of a file whose tensors are
// sound. What loads must also run.
#include <cstring>
#include <string>

#include "codec/codec.h"
#include "core/error.h"
#include "core/safetensors.h"
#include "tests/codec/small_models.h"
#include "tests/random.h"

namespace {

void load_and_run(std::span<const std::byte> file) {
  const auto codec = tessera::Codec::parse(file, "fuzz");
  // A network of a thousand wide layers is no error, but no input for a fuzzer either.
  if (!codec || (*codec)->info().samples_per_frame > 4096) return;
  tessera::Encoder encoder = (*codec)->encoder({.max_frames_per_step = 2});
  tessera::Decoder decoder = (*codec)->decoder({.max_frames_per_step = 2});
  const auto sound =
      tessera::test::test_sound(static_cast<std::size_t>((*codec)->info().samples_per_frame) + 3);
  const auto decode = [&](const tessera::Frame& frame) {
    (void)decoder.push(frame, [](std::span<const float>) {});
  };
  encoder.push(sound, decode);
  encoder.flush(decode);
}

// The small model of our family with `config` as its configuration.
std::string with_config(const std::string& config) {
  static const std::string original = tessera::test::small_weights("tessera");
  static const auto file =
      tessera::SafeTensors::parse(std::as_bytes(std::span(original)), "original").value();
  std::vector<tessera::NamedTensor> tensors;
  for (const std::string& name : file->names()) {
    const tessera::TensorView view = file->get(name).value();
    tensors.push_back({name, view.dtype, view.shape, view.bytes});
  }
  std::string bytes;
  const tessera::ByteSink sink = [&](std::span<const std::byte> part) -> tessera::Result<void> {
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
    return {};
  };
  tessera::write_safetensors(sink, tensors, {{"config", config}}).value();
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  load_and_run(std::as_bytes(std::span(data, size)));
  try {
    const std::string file = with_config(std::string(reinterpret_cast<const char*>(data), size));
    load_and_run(std::as_bytes(std::span(file)));
  } catch (const tessera::UsageError&) {  // the writer takes UTF-8 only
  }
  return 0;
}
