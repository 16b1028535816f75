// One checkpoint file. The hash covers a manifest: step, metadata, and for each tensor by name its type,
// shape and the hash of its bytes. It lies in the file's own metadata.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <optional>

#include "core/hash.h"
#include "core/safetensors.h"
#include "core/untrusted.h"
#include "train/checkpoint.h"

namespace tessera::train {
namespace {

constexpr const char* kStepKey = "checkpoint.step";
constexpr const char* kHashKey = "checkpoint.hash";
constexpr const char* kMetadataKey = "checkpoint.metadata";

std::string hash_of(std::string_view step, std::string_view metadata, std::vector<NamedTensor> tensors) {
  std::ranges::sort(tensors, {}, &NamedTensor::name);
  std::string manifest = "step " + std::string(step) + "\n";
  for (const NamedTensor& tensor : tensors) {
    manifest += tensor.name + " " + name_of(tensor.dtype) + " " + tensor.shape.str() + " " +
                hex(content_hash(tensor.bytes)) + "\n";
  }
  manifest += metadata;
  return hex(content_hash(std::as_bytes(std::span(manifest))));
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

Result<void> write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    NamedTensor named;
    named.name = name;
    named.dtype = tensor.dtype();
    named.shape = tensor.shape();
    named.bytes = {static_cast<const std::byte*>(tensor.raw()), tensor.bytes()};
    tensors.push_back(std::move(named));
  }
  Metadata metadata;
  metadata[kStepKey] = std::to_string(checkpoint.step);
  metadata[kMetadataKey] = checkpoint.metadata;
  metadata[kHashKey] = hash_of(metadata[kStepKey], checkpoint.metadata, tensors);
  return write_safetensors(path, tensors, metadata);
}

Result<Checkpoint> read_checkpoint(const std::string& path) {
  auto file = SafeTensors::open(path);
  if (!file) {
    const bool io = file.error().code == ErrorCode::io;
    return Error{io ? ErrorCode::io : ErrorCode::damaged, file.error().message};
  }
  const auto step_text = (*file)->metadata(kStepKey), hash = (*file)->metadata(kHashKey),
             text = (*file)->metadata(kMetadataKey);
  const auto step = step_text ? whole_number(*step_text) : std::nullopt;
  if (!step || !hash || !text) {
    return Error{ErrorCode::format, path +
                                        ": expected a training checkpoint, got a safetensors file without " +
                                        kStepKey + ", " + kHashKey + " and " + kMetadataKey};
  }
  std::vector<NamedTensor> tensors;
  for (const std::string& name : (*file)->names()) {
    const TensorView view = *(*file)->find(name);
    NamedTensor named;
    named.name = name;
    named.dtype = view.dtype;
    named.shape = view.shape;
    named.bytes = view.bytes;
    tensors.push_back(std::move(named));
  }
  const std::string actual = hash_of(*step_text, *text, tensors);
  if (actual != *hash) {
    return Error{ErrorCode::damaged,
                 path + ": damaged: its content has the hash " + actual + ", expected " + in_quotes(*hash)};
  }
  Checkpoint checkpoint;
  checkpoint.step = *step;
  checkpoint.metadata = *text;
  for (const NamedTensor& named : tensors) {
    Tensor tensor = Tensor::zeros(named.shape, named.dtype);
    if (!named.bytes.empty()) std::memcpy(tensor.raw(), named.bytes.data(), named.bytes.size());
    checkpoint.tensors.emplace_back(named.name, std::move(tensor));
  }
  return checkpoint;
}

}  // namespace tessera::train
