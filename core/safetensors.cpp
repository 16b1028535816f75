// The header is read event by event (SAX): nothing is built for nesting, duplicates or keys that the format
// does not have; the first surprise ends the parse. Offsets are checked once all entries are known.
#include "core/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/untrusted.h"

namespace tessera {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor bytes are used as they lie in the file");

constexpr std::size_t kPrefixBytes = 8;

struct DTypeName {
  const char* name;
  DType type;
};
constexpr std::array<DTypeName, 10> kDTypeNames{{{"F64", DType::f64},
                                                 {"F32", DType::f32},
                                                 {"F16", DType::f16},
                                                 {"BF16", DType::bf16},
                                                 {"I64", DType::i64},
                                                 {"I32", DType::i32},
                                                 {"I16", DType::i16},
                                                 {"I8", DType::i8},
                                                 {"U8", DType::u8},
                                                 {"BOOL", DType::boolean}}};

std::string list_of_dtypes() {
  std::string list;
  for (const auto& [name, type] : kDTypeNames) {
    if (!list.empty()) list += ' ';
    list += name;
  }
  return list;
}

/// One tensor as the header states it.
struct Entry {
  std::string name;
  std::optional<DType> dtype;
  std::optional<std::vector<std::int64_t>> shape;
  std::vector<std::uint64_t> offsets;  // begin, end: relative to the data
};

class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Entry> entries;
  Metadata metadata;
  Error error;

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::outside:
        return enter(Place::top);
      case Place::top:
        if (!seen_.insert(key_).second) return twice(key_);
        if (key_ == "__metadata__") return enter(Place::metadata);
        entries.emplace_back().name = key_;
        return enter(Place::tensor);
      default:
        return surprise("an object");
    }
  }
  bool end_object() override {
    if (place_ == Place::tensor) {
      const Entry& entry = entries.back();
      if (!entry.dtype || !entry.shape || entry.offsets.size() != 2) {
        return refuse("tensor " + in_quotes(entry.name) + " lacks dtype, shape or data_offsets");
      }
    }
    return enter(place_ == Place::top ? Place::outside : Place::top);
  }
  bool key(string_t& key) override {
    key_ = key;
    return true;
  }
  bool string(string_t& text) override {
    if (place_ == Place::metadata) return metadata.emplace(key_, text).second || twice(key_);
    if (place_ != Place::tensor || key_ != "dtype") return surprise("a string");
    Entry& entry = entries.back();
    if (entry.dtype) return twice(key_);
    for (const auto& [name, type] : kDTypeNames) {
      if (text == name) entry.dtype = type;
    }
    return entry.dtype || refuse("tensor " + in_quotes(entry.name) + " has dtype " + in_quotes(text) +
                                     ", supported are " + list_of_dtypes(),
                                 ErrorCode::unsupported);
  }
  bool start_array(std::size_t) override {
    if (place_ != Place::tensor) return surprise("an array");
    Entry& entry = entries.back();
    if (key_ == "shape") {
      if (entry.shape) return twice(key_);
      entry.shape.emplace();
      return enter(Place::shape);
    }
    if (key_ != "data_offsets") return surprise("an array");
    if (!entry.offsets.empty()) return twice(key_);
    return enter(Place::offsets);
  }
  bool end_array() override {
    if (place_ == Place::offsets && entries.back().offsets.size() != 2) return wrong_offsets();
    return enter(Place::tensor);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::offsets) {
      entries.back().offsets.push_back(value);
      return entries.back().offsets.size() <= 2 || wrong_offsets();
    }
    if (place_ != Place::shape) return surprise("a number");
    Entry& entry = entries.back();
    if (entry.shape->size() == Shape::kMaxRank) {
      return refuse("tensor " + in_quotes(entry.name) + " has more than 5 axes", ErrorCode::unsupported);
    }
    if (!std::in_range<std::int64_t>(value)) return surprise("an extent of " + std::to_string(value));
    entry.shape->push_back(static_cast<std::int64_t>(value));
    return true;
  }
  bool number_integer(number_integer_t value) override { return surprise(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override {
    return surprise("the number " + in_quotes(text));
  }
  bool null() override { return surprise("null"); }
  bool boolean(bool) override { return surprise("a boolean"); }
  bool binary(binary_t&) override { return surprise("binary"); }
  /// `position` counts the characters read, the wrong one included.
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception&) override {
    return refuse("the header is not valid JSON at byte " + std::to_string(kPrefixBytes + position - 1) +
                  ", near " + in_quotes(token));
  }

 private:
  enum class Place { outside, top, metadata, tensor, shape, offsets };

  bool enter(Place place) {
    place_ = place;
    return true;
  }
  bool refuse(std::string message, ErrorCode code = ErrorCode::format) {
    error = {code, std::move(message)};
    return false;
  }
  bool twice(const std::string& what) {
    return refuse("the header has " + in_quotes(what) + " twice" + where());
  }
  bool wrong_offsets() { return refuse("data_offsets is not a pair" + where()); }
  bool surprise(const std::string& got) {
    switch (place_) {
      case Place::outside:
        return refuse("expected a JSON object as header, got " + got);
      case Place::metadata:
        return refuse("__metadata__ " + in_quotes(key_) + ": expected a string, got " + got);
      case Place::shape:
      case Place::offsets:
        return refuse("expected whole numbers >= 0 in " + key_ + ", got " + got + where());
      default:
        return refuse("the header key " + in_quotes(key_) + " cannot have " + got + where());
    }
  }
  std::string where() const {
    const bool inside = place_ == Place::tensor || place_ == Place::shape || place_ == Place::offsets;
    return inside ? " (tensor " + in_quotes(entries.back().name) + ")" : "";
  }

  Place place_ = Place::outside;
  std::string key_;
  std::set<std::string> seen_;  // keys of the outermost object
};

/// Every entry's bytes follow the one before, from the first byte of the data to the last; sizes fit the
/// shapes.
std::optional<Error> check_offsets(const std::vector<Entry>& entries, std::uint64_t data_bytes) {
  std::vector<const Entry*> ordered;
  for (const Entry& entry : entries) ordered.push_back(&entry);
  std::ranges::stable_sort(
      ordered, {}, [](const Entry* entry) { return std::pair(entry->offsets[0], entry->offsets[1]); });
  std::uint64_t expected_begin = 0;
  for (const Entry* entry : ordered) {
    const std::uint64_t begin = entry->offsets[0], end = entry->offsets[1];
    const std::string what = "tensor " + in_quotes(entry->name) + ", data_offsets [" + std::to_string(begin) +
                             ", " + std::to_string(end) + "]: ";
    const auto format_error = [&what](const std::string& text) {
      return Error{ErrorCode::format, what + text};
    };
    if (begin > end) return format_error("begin is after end");
    if (end > data_bytes)
      return format_error("the file has only " + std::to_string(data_bytes) + " bytes of data");
    if (begin != expected_begin) {
      return format_error("expected begin " + std::to_string(expected_begin) + ", without gap or overlap");
    }
    const auto bytes = checked_bytes(*entry->shape, static_cast<std::int64_t>(size_of(*entry->dtype)));
    if (!bytes || static_cast<std::uint64_t>(*bytes) != end - begin) {
      const std::string count = bytes ? std::to_string(*bytes) + " bytes" : "more bytes than can be counted";
      return format_error(std::string(name_of(*entry->dtype)) + " " + Shape(*entry->shape).str() + " takes " +
                          count);
    }
    expected_begin = end;
  }
  if (expected_begin == data_bytes) return std::nullopt;
  return Error{ErrorCode::format, "the tensors end at byte " + std::to_string(expected_begin) + " of " +
                                      std::to_string(data_bytes) + " bytes of data"};
}

}  // namespace

Result<std::shared_ptr<const SafeTensors>> SafeTensors::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  const auto bytes = file->bytes();
  return parse(std::move(*file), bytes, path);
}

Result<std::shared_ptr<const SafeTensors>> SafeTensors::parse(std::span<const std::byte> bytes,
                                                              std::string name) {
  return parse(MappedFile(), bytes, std::move(name));
}

Result<std::shared_ptr<const SafeTensors>> SafeTensors::parse(MappedFile file,
                                                              std::span<const std::byte> bytes,
                                                              std::string name) {
  const auto format_error = [&name](const std::string& text) {
    return Error{ErrorCode::format, name + ": " + text};
  };
  if (bytes.size() < kPrefixBytes) {
    return format_error("expected a safetensors file, got only " + std::to_string(bytes.size()) + " bytes");
  }
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), kPrefixBytes);
  const std::size_t available = bytes.size() - kPrefixBytes;
  if (header_bytes > kMaxHeaderBytes || header_bytes > available) {
    return format_error("expected a safetensors file, got a header of " + std::to_string(header_bytes) +
                        " bytes where the file has " + std::to_string(available) + " and the format allows " +
                        std::to_string(kMaxHeaderBytes));
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kPrefixBytes, header_bytes);
  if (!header.starts_with('{')) return format_error("expected '{' at byte 8, where the header begins");

  HeaderReader reader;
  if (!nlohmann::json::sax_parse(header.begin(), header.end(), &reader)) {
    return Error{reader.error.code, name + ": " + reader.error.message};
  }
  const auto data = bytes.subspan(kPrefixBytes + header_bytes);
  if (const auto error = check_offsets(reader.entries, data.size())) return format_error(error->message);

  std::shared_ptr<SafeTensors> result(new SafeTensors());
  for (Entry& entry : reader.entries) {
    const auto tensor_bytes = data.subspan(entry.offsets[0], entry.offsets[1] - entry.offsets[0]);
    result->views_[entry.name] = {*entry.dtype, Shape(*entry.shape), tensor_bytes};
    result->names_.push_back(std::move(entry.name));
  }
  result->file_ = std::move(file);
  result->bytes_ = bytes;
  result->name_ = std::move(name);
  result->metadata_ = std::move(reader.metadata);
  return std::shared_ptr<const SafeTensors>(std::move(result));
}

std::optional<TensorView> SafeTensors::find(std::string_view name) const {
  const auto found = views_.find(name);
  if (found == views_.end()) return std::nullopt;
  return found->second;
}

Result<TensorView> SafeTensors::get(std::string_view name) const {
  if (const auto view = find(name)) return *view;
  return Error{ErrorCode::mismatch, name_ + ": expected a tensor " + in_quotes(name) + ", got none among " +
                                        std::to_string(names_.size())};
}

Result<std::vector<float>> SafeTensors::read_f32(std::string_view name) const {
  const auto view = get(name);
  if (!view) return view.error();
  auto values = to_f32(*view);
  if (!values)
    return Error{values.error().code, name_ + ": tensor " + in_quotes(name) + ": " + values.error().message};
  return values;
}

Result<std::vector<float>> SafeTensors::read_f32(std::string_view name, const Shape& shape) const {
  const auto view = get(name);
  if (!view) return view.error();
  if (view->shape != shape) {
    return Error{ErrorCode::mismatch, name_ + ": tensor " + in_quotes(name) + ": expected shape " +
                                          shape.str() + ", got " + view->shape.str()};
  }
  return read_f32(name);
}

std::optional<std::string_view> SafeTensors::metadata(std::string_view key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) return std::nullopt;
  return found->second;
}

}  // namespace tessera
