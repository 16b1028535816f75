// Writing safetensors, and the conversion of a view to floats. The header is padded with spaces so that the
// data starts at a multiple of 64 bytes; within it, larger elements come first, so each tensor is aligned to
// its element.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/safetensors.h"
#include "core/untrusted.h"

namespace tessera {
namespace {

constexpr std::size_t kPrefixBytes = 8;
constexpr std::size_t kDataAlign = 64;

std::string json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    fail("write_safetensors", "UTF-8 text", in_quotes(text));
  }
}

std::string dtype_name(DType type) {
  std::string name = name_of(type);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::vector<const NamedTensor*> in_file_order(std::span<const NamedTensor> tensors) {
  std::vector<const NamedTensor*> ordered;
  for (const NamedTensor& tensor : tensors) {
    const std::size_t expected = static_cast<std::size_t>(tensor.shape.size()) * size_of(tensor.dtype);
    if (tensor.bytes.size() != expected) {
      fail("write_safetensors", in_quotes(tensor.name) + " with " + std::to_string(expected) + " bytes",
           std::to_string(tensor.bytes.size()));
    }
    ordered.push_back(&tensor);
  }
  std::ranges::sort(ordered, [](const NamedTensor* a, const NamedTensor* b) {
    const std::size_t size_a = size_of(a->dtype), size_b = size_of(b->dtype);
    return size_a != size_b ? size_a > size_b : a->name < b->name;
  });
  return ordered;
}

std::string make_header(std::span<const NamedTensor* const> ordered, const Metadata& metadata) {
  std::set<std::string_view> names{"__metadata__"};
  std::string header = "{";
  auto next = [&header, first = true]() mutable { header += std::exchange(first, false) ? "" : ","; };
  if (!metadata.empty()) {
    next();
    header += R"("__metadata__":{)";
    for (auto entry = metadata.begin(); entry != metadata.end(); ++entry) {
      if (entry != metadata.begin()) header += ",";
      header += json_string(entry->first) + ":" + json_string(entry->second);
    }
    header += "}";
  }
  std::size_t begin = 0;
  for (const NamedTensor* tensor : ordered) {
    if (!names.insert(tensor->name).second) {
      fail("write_safetensors", "distinct names other than __metadata__", in_quotes(tensor->name));
    }
    next();
    header += json_string(tensor->name) + R"(:{"dtype":")" + dtype_name(tensor->dtype) + R"(","shape":[)";
    for (int axis = 0; axis < tensor->shape.rank(); ++axis) {
      if (axis) header += ',';
      header += std::to_string(tensor->shape[axis]);
    }
    const std::size_t end = begin + tensor->bytes.size();
    header += R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
    begin = end;
  }
  header += "}";
  header.append((kDataAlign - (kPrefixBytes + header.size()) % kDataAlign) % kDataAlign, ' ');
  if (header.size() > SafeTensors::kMaxHeaderBytes) {
    fail("write_safetensors", "a header of at most 100000000 bytes", std::to_string(header.size()));
  }
  return header;
}

/// Reads element i of type T from bytes that may be unaligned.
template <class T>
T element(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

Result<void> write_safetensors(const ByteSink& sink, std::span<const NamedTensor> tensors,
                               const Metadata& metadata) {
  const auto ordered = in_file_order(tensors);
  const std::string header = make_header(ordered, metadata);
  const std::uint64_t header_bytes = header.size();
  if (auto done = sink(std::as_bytes(std::span(&header_bytes, 1))); !done) return done;
  if (auto done = sink(std::as_bytes(std::span(header))); !done) return done;
  for (const NamedTensor* tensor : ordered) {
    if (auto done = sink(tensor->bytes); !done) return done;
  }
  return {};
}

Result<void> write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                               const Metadata& metadata) {
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  const ByteSink sink = [&file](std::span<const std::byte> bytes) { return file->write(bytes); };
  if (auto done = write_safetensors(sink, tensors, metadata); !done) return done;
  return file->commit();
}

Result<std::vector<float>> to_f32(const TensorView& view) {
  std::vector<float> values(static_cast<std::size_t>(view.shape.size()));
  switch (view.dtype) {
    case DType::f32:
      if (!values.empty()) std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
      return values;
    case DType::f64:
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(element<double>(view.bytes, i));
      }
      return values;
    case DType::bf16:
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = bf16_to_f32(element<std::uint16_t>(view.bytes, i));
      }
      return values;
    case DType::f16:
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = f16_to_f32(element<std::uint16_t>(view.bytes, i));
      }
      return values;
    default:
      return Error{ErrorCode::mismatch,
                   std::string("expected f32, f16, bf16 or f64, got ") + name_of(view.dtype)};
  }
}

}  // namespace tessera
