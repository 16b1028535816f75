#include "train/named_state.h"

#include <cstring>
#include <map>
#include <string_view>

#include "core/untrusted.h"

namespace tessera::train {
namespace {

std::string described(const Tensor& tensor) {
  return std::string(name_of(tensor.dtype())) + " " + tensor.shape().str();
}

}  // namespace

Result<void> copy_state(std::span<const std::pair<std::string, Tensor>> from, const NamedTensors& to,
                        const std::string& what) {
  const auto mismatch = [&what](const std::string& text) {
    return Error{ErrorCode::mismatch, "state of " + what + ": " + text};
  };
  std::map<std::string_view, const Tensor*> given;
  for (const auto& [name, tensor] : from) {
    if (!given.emplace(name, &tensor).second) return mismatch(in_quotes(name) + " comes twice");
  }
  for (const auto& [name, tensor] : to) {
    const auto found = given.find(name);
    if (found == given.end()) return mismatch("expected a tensor " + in_quotes(name) + ", got none");
    const Tensor& source = *found->second;
    if (source.shape() != tensor.shape() || source.dtype() != tensor.dtype()) {
      return mismatch("expected " + in_quotes(name) + " as " + described(tensor) + ", got " +
                      described(source));
    }
    given.erase(found);
  }
  if (!given.empty()) return mismatch("there is no place for " + in_quotes(given.begin()->first));

  for (const auto& [name, tensor] : from) given.emplace(name, &tensor);
  for (const auto& [name, tensor] : to) {
    if (tensor.bytes() == 0) continue;
    Tensor target = tensor;  // the same storage
    std::memcpy(target.raw(), given.at(name)->raw(), tensor.bytes());
  }
  return {};
}

NamedTensors with_prefix(const std::string& prefix, NamedTensors tensors) {
  for (auto& [name, tensor] : tensors) name.insert(0, prefix);
  return tensors;
}

NamedTensors part_of(std::span<const std::pair<std::string, Tensor>> tensors, const std::string& prefix) {
  NamedTensors part;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) part.emplace_back(name.substr(prefix.size()), tensor);
  }
  return part;
}

}  // namespace tessera::train
