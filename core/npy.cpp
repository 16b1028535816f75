// The header is a Python dict literal with exactly the keys descr, fortran_order and shape; only as much of
// Python as NumPy itself writes is understood.
#include "core/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "core/untrusted.h"

namespace tessera {
namespace {

static_assert(std::endian::native == std::endian::little, "array bytes are used as they lie in the file");

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kMaxHeaderBytes = 65535;  // NumPy writes well under 1 KiB for such arrays
constexpr std::size_t kDataAlign = 64;

struct Descr {
  const char* name;
  DType type;
};
constexpr std::array<Descr, 7> kDescrs{{{"<f4", DType::f32},
                                        {"<f8", DType::f64},
                                        {"<i2", DType::i16},
                                        {"<i4", DType::i32},
                                        {"<i8", DType::i64},
                                        {"|i1", DType::i8},
                                        {"|u1", DType::u8}}};

/// Reads the dict; each method returns false at the first surprise and leaves the reason in `error`.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::size_t offset) : text_(text), offset_(offset) {}

  std::optional<DType> type;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
  Error error;

  bool read() {
    if (!expect('{')) return false;
    while (!accept('}')) {
      std::string key;
      if (!read_string(key) || !expect(':')) return false;
      if (key == "descr" && !type) {
        if (!read_descr()) return false;
      } else if (key == "fortran_order" && !fortran_order) {
        if (!read_bool()) return false;
      } else if (key == "shape" && !shape) {
        if (!read_shape()) return false;
      } else {
        return refuse("expected descr, fortran_order and shape once each, got " + in_quotes(key));
      }
      if (!accept(',') && peek() != '}') return refuse("expected ',' or '}'");
    }
    if (peek() != '\0') return refuse("expected nothing after the dict");
    return (type && fortran_order && shape) || refuse("expected descr, fortran_order and shape");
  }

 private:
  bool refuse(const std::string& what, ErrorCode code = ErrorCode::format) {
    error = {code, what + " (header, byte " + std::to_string(offset_ + at_) + ")"};
    return false;
  }
  /// The next character that is not white space, '\0' at the end.
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  bool expect(char wanted) { return accept(wanted) || refuse(std::string("expected '") + wanted + "'"); }
  bool read_string(std::string& value) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return refuse("expected a quoted string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return refuse("the string has no end");
    value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }
  bool read_descr() {
    if (peek() == '[') return refuse("structured arrays are not supported", ErrorCode::unsupported);
    std::string name;
    if (!read_string(name)) return false;
    std::string known;
    for (const Descr& descr : kDescrs) {
      if (name == descr.name) type = descr.type;
      known += std::string(" ") + descr.name;
    }
    return type ||
           refuse("dtype " + in_quotes(name) + " is not supported, only" + known, ErrorCode::unsupported);
  }
  bool read_bool() {
    peek();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      fortran_order = word == "True";
      return true;
    }
    return refuse("expected True or False");
  }
  bool read_shape() {
    if (!expect('(')) return false;
    shape.emplace();
    while (!accept(')')) {
      if (shape->size() == Shape::kMaxRank) return refuse("more than 5 axes", ErrorCode::unsupported);
      peek();
      std::int64_t extent = 0;
      const auto [end, status] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (status != std::errc() || extent < 0) return refuse("expected an extent from 0 to 2^63 - 1");
      at_ = static_cast<std::size_t>(end - text_.data());
      shape->push_back(extent);
      if (!accept(',') && peek() != ')') return refuse("expected ',' or ')'");
    }
    return true;
  }

  std::string_view text_;
  std::size_t offset_;  // of the text in the file
  std::size_t at_ = 0;
};

/// Copies an array whose first axis runs fastest into C order, where the last one does.
void copy_from_fortran(const std::byte* from, const Shape& shape, std::size_t element_bytes, std::byte* to) {
  std::array<std::int64_t, Shape::kMaxRank> index{};
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    std::int64_t source = 0;
    for (int axis = shape.rank(); axis-- > 0;)
      source = source * shape[axis] + index[static_cast<std::size_t>(axis)];
    std::memcpy(to + static_cast<std::size_t>(i) * element_bytes,
                from + static_cast<std::size_t>(source) * element_bytes, element_bytes);
    for (int axis = shape.rank(); axis-- > 0;) {
      if (++index[static_cast<std::size_t>(axis)] < shape[axis]) break;
      index[static_cast<std::size_t>(axis)] = 0;
    }
  }
}

template <class T>
Result<void> write_array(const ByteSink& sink, const char* descr, const Shape& shape,
                         std::span<const T> values) {
  if (static_cast<std::uint64_t>(shape.size()) != values.size()) {
    fail("write_npy", std::to_string(shape.size()) + " values for " + shape.str(),
         std::to_string(values.size()));
  }
  std::string header = std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    header += std::to_string(shape[axis]) + (axis + 1 < shape.rank() ? ", " : shape.rank() == 1 ? "," : "");
  }
  header += "), }";
  const std::size_t prefix = kMagic.size() + 4;  // version and a length of two bytes
  header.append((kDataAlign - (prefix + header.size() + 1) % kDataAlign) % kDataAlign, ' ');
  header += '\n';

  const std::array<char, 4> version_and_length = {1, 0, static_cast<char>(header.size() & 255),
                                                  static_cast<char>(header.size() >> 8)};
  const std::string front = std::string(kMagic) + std::string(version_and_length.data(), 4) + header;
  if (auto done = sink(std::as_bytes(std::span(front))); !done) return done;
  return sink(std::as_bytes(values));
}

template <class T>
Result<void> write_array(const std::string& path, const Shape& shape, std::span<const T> values) {
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  const ByteSink sink = [&file](std::span<const std::byte> bytes) { return file->write(bytes); };
  if (auto done = write_npy(sink, shape, values); !done) return done;
  return file->commit();
}

}  // namespace

Result<Tensor> read_npy(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return file.error();
  return parse_npy(file->bytes(), path);
}

Result<Tensor> parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  const auto error = [&name](const std::string& text, ErrorCode code = ErrorCode::format) {
    return Error{code, name + ": " + text};
  };
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic)) return error("expected a .npy file, which begins with \\x93NUMPY");
  const auto byte_at = [&bytes](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };

  if (bytes.size() < 8) return error("the file ends before the version");
  const std::size_t major = byte_at(6), minor = byte_at(7);
  if (major < 1 || major > 3 || minor != 0) {
    return error(
        "expected .npy version 1.0, 2.0 or 3.0, got " + std::to_string(major) + "." + std::to_string(minor),
        ErrorCode::unsupported);
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t header_begin = 8 + length_bytes;
  if (bytes.size() < header_begin) return error("the file ends before the header");
  std::size_t header_bytes = 0;
  for (std::size_t i = length_bytes; i-- > 0;) header_bytes = header_bytes << 8 | byte_at(8 + i);
  if (header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - header_begin) {
    return error("the header claims " + std::to_string(header_bytes) + " bytes, the file has " +
                 std::to_string(bytes.size() - header_begin) + " and at most 65535 are read");
  }
  HeaderReader header(text.substr(header_begin, header_bytes), header_begin);
  if (!header.read()) return error(header.error.message, header.error.code);

  const auto data = bytes.subspan(header_begin + header_bytes);
  const std::size_t element_bytes = size_of(*header.type);
  const auto expected = checked_bytes(*header.shape, static_cast<std::int64_t>(element_bytes));
  const Shape shape(*header.shape);
  if (!expected || static_cast<std::uint64_t>(*expected) != data.size()) {
    return error("expected " + (expected ? std::to_string(*expected) : "more than 2^63") +
                 " bytes of data for " + name_of(*header.type) + " " + shape.str() + ", got " +
                 std::to_string(data.size()));
  }
  Tensor array = Tensor::zeros(shape, *header.type);
  if (*header.fortran_order && shape.rank() > 1) {
    copy_from_fortran(data.data(), shape, element_bytes, array.as<std::byte>());
  } else if (!data.empty()) {
    std::memcpy(array.raw(), data.data(), data.size());
  }
  return array;
}

Result<void> write_npy(const ByteSink& sink, const Shape& shape, std::span<const float> values) {
  return write_array(sink, "<f4", shape, values);
}

Result<void> write_npy(const ByteSink& sink, const Shape& shape, std::span<const std::int32_t> values) {
  return write_array(sink, "<i4", shape, values);
}

Result<void> write_npy(const std::string& path, const Shape& shape, std::span<const float> values) {
  return write_array(path, shape, values);
}

Result<void> write_npy(const std::string& path, const Shape& shape, std::span<const std::int32_t> values) {
  return write_array(path, shape, values);
}

}  // namespace tessera
