// Loading a graph: shapes, constants and operations are checked once, so that running needs no checks. Field
// numbers are those of TensorFlow Lite's schema, version 3.
#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>

#include "core/mapped_file.h"
#include "core/untrusted.h"
#include "metrics/flatbuffer.h"
#include "metrics/tflite_graph.h"

namespace tessera::metrics {
namespace {

// Numbers of the operations that are handled.
enum class Operator : std::int32_t {
  add = 0,
  concatenation = 2,
  fully_connected = 9,
  mul = 18,
  relu = 19,
  reshape = 22,
  sub = 41,
  split = 49,
  cast = 53,
  minimum = 57,
  expand_dims = 70,
  equal = 71,
  shape = 77,
  fill = 94,
  abs = 101,
  batch_matmul = 126,
};

// Far above what a lattice needs: a hostile file cannot ask for hours.
constexpr std::size_t kMaxSteps = 65536, kMaxTensorsOfStep = 1024, kMaxProducts = std::size_t{1} << 28;

}  // namespace

class TfliteGraph::Loader {
 public:
  Loader(std::span<const std::byte> bytes, const std::string& name) : file_(bytes, name), name_(name) {}

  TfliteGraph load() {
    if (file_.identifier() != "TFL3") {
      file_.fail("expected a TensorFlow Lite file (TFL3), got " + in_quotes(file_.identifier()));
    }
    const FlatTable model = file_.root();
    const FlatVector graphs = model.vector(2, 4);
    if (graphs.size != 1) unsupported("one graph", std::to_string(graphs.size));
    const FlatTable graph = model.table(graphs, 0);
    load_tensors(model, graph);
    load_names(model, graph);
    load_steps(model, graph);
    const FlatVector outputs = graph.vector(2, 4);
    if (outputs.size == 0) file_.fail("expected an output, got none");
    result_.output_ = known(graph.element<std::int32_t>(outputs, 0));
    return std::move(result_);
  }

 private:
  [[noreturn]] void unsupported(const std::string& expected, const std::string& got) const {
    throw ResultError({ErrorCode::unsupported, name_ + ": expected " + expected + ", got " + got});
  }

  void load_tensors(const FlatTable& model, const FlatTable& graph) {
    constexpr int kF32 = 0, kBoolean = 6;
    const FlatVector tensors = graph.vector(0, 4), buffers = model.vector(4, 4);
    for (std::size_t i = 0; i < tensors.size; ++i) {
      const FlatTable table = graph.table(tensors, i);
      Tensor& tensor = result_.tensors_.emplace_back();
      const int type = table.number<std::uint8_t>(1, 0);
      if (type != kF32 && type != kBoolean) continue;  // stays without a size: no operation may use it
      std::vector<std::int64_t> extents;
      const FlatVector shape = table.vector(0, 4);
      for (std::size_t axis = 0; axis < shape.size && axis <= kMaxAxes; ++axis) {
        extents.push_back(table.element<std::int32_t>(shape, axis));
      }
      place(tensor, extents);
      const auto buffer = table.number<std::uint32_t>(2, 0);
      if (buffer >= buffers.size)
        file_.fail("tensor " + std::to_string(i) + " has a buffer that is not there");
      const FlatVector data = model.table(buffers, buffer).vector(0, 1);
      if (data.size == 0) continue;
      if (type != kF32 || data.size != tensor.size * sizeof(float)) {
        file_.fail("expected " + std::to_string(tensor.size) + " f32 numbers in tensor " + std::to_string(i) +
                   ", got " + std::to_string(data.size) + " bytes");
      }
      std::memcpy(result_.constants_.data() + tensor.begin, file_.bytes(data.begin, data.size).data(),
                  data.size);
      tensor.known = true;
    }
  }

  // Gives a tensor its shape and its part of the memory.
  void place(Tensor& tensor, const std::vector<std::int64_t>& extents) {
    if (extents.size() > kMaxAxes) unsupported("up to 3 axes", "more");
    tensor.shape.clear();
    tensor.begin = result_.constants_.size();
    tensor.size = 1;
    for (const std::int64_t extent : extents) {
      if (extent < 1) unsupported("extents of 1 or more", std::to_string(extent));
      tensor.shape.push_back(static_cast<std::size_t>(extent));
      tensor.size *= tensor.shape.back();
      if (tensor.size > kMaxElements - std::min(tensor.begin, kMaxElements)) {
        unsupported("up to 2^24 elements in all tensors", "more");
      }
    }
    result_.constants_.resize(tensor.begin + tensor.size);
  }

  void load_names(const FlatTable& model, const FlatTable& graph) {
    const FlatVector signatures = model.vector(7, 4);
    if (signatures.size == 0) unsupported("a signature that names the inputs", "none");
    const FlatTable signature = model.table(signatures, 0);
    const FlatVector inputs = signature.vector(0, 4);
    for (std::size_t i = 0; i < inputs.size; ++i) {
      const FlatTable input = signature.table(inputs, i);
      const std::size_t tensor = index(static_cast<std::int32_t>(input.number<std::uint32_t>(1, 0)));
      if (result_.tensors_[tensor].size != 1) unsupported("inputs of one number", "more");
      result_.tensors_[tensor].known = true;
      result_.inputs_[std::string(input.text(0))] = tensor;
    }
    if (inputs.size != graph.vector(1, 4).size) file_.fail("the signature does not name all inputs");
  }

  void load_steps(const FlatTable& model, const FlatTable& graph) {
    const FlatVector codes = model.vector(1, 4), operations = graph.vector(3, 4);
    if (operations.size > kMaxSteps) unsupported("up to 65536 operations", std::to_string(operations.size));
    for (std::size_t i = 0; i < operations.size; ++i) {
      const FlatTable operation = graph.table(operations, i);
      const auto code = operation.number<std::uint32_t>(0, 0);
      if (code >= codes.size) file_.fail("operation " + std::to_string(i) + " has a code that is not there");
      const FlatTable entry = model.table(codes, code);
      load_step(std::max<std::int32_t>(entry.number<std::uint8_t>(0, 0), entry.number<std::int32_t>(3, 0)),
                operation, operation.child(4));
    }
  }

  void load_step(int code, const FlatTable& operation, const std::optional<FlatTable>& options) {
    std::vector<std::int32_t> from, to;
    for (const auto& [field, list] : {std::pair{1, &from}, std::pair{2, &to}}) {
      const FlatVector v = operation.vector(field, 4);
      if (v.size > kMaxTensorsOfStep) unsupported("up to 1024 tensors", std::to_string(v.size));
      for (std::size_t i = 0; i < v.size; ++i) list->push_back(operation.element<std::int32_t>(v, i));
    }
    if (from.empty() || to.empty()) file_.fail("an operation has no inputs or no outputs");
    // What most operations may do to their result, and the transpositions of products, are numbers other than
    // 0 in these fields.
    const auto plain = [&](std::initializer_list<int> fields) {
      for (const int field : fields) {
        check(!options || options->number<std::uint8_t>(field, 0) == 0, "operations without extras");
      }
    };
    switch (static_cast<Operator>(code)) {
      case Operator::shape:  // integers
        return;
      case Operator::reshape:
      case Operator::cast:
      case Operator::expand_dims:
        return unary(Kind::copy, from[0], to[0]);
      case Operator::relu:
        return unary(Kind::relu, from[0], to[0]);
      case Operator::abs:
        return unary(Kind::absolute, from[0], to[0]);
      case Operator::fill:
        check(from.size() == 2, "a shape and a number to fill it with");
        return unary(Kind::fill, from[1], to[0]);
      case Operator::add:
        plain({0});
        return binary(Kind::add, from, to[0]);
      case Operator::sub:
        plain({0});
        return binary(Kind::subtract, from, to[0]);
      case Operator::mul:
        plain({0});
        return binary(Kind::multiply, from, to[0]);
      case Operator::minimum:
        return binary(Kind::minimum, from, to[0]);
      case Operator::equal:
        return binary(Kind::equal, from, to[0]);
      case Operator::concatenation:
        plain({1});
        return concatenate(from, to[0]);
      case Operator::split:  // its axis comes first
        check(from.size() == 2, "an axis and a tensor to split");
        return split(from[1], to);
      case Operator::fully_connected:
        plain({0, 1});
        check(from.size() == 2 || (from.size() == 3 && from[2] == -1),
              "a fully connected layer without bias");
        return product(true, from, to[0]);
      case Operator::batch_matmul:
        plain({0, 1});
        check(from.size() == 2, "two matrices");
        return product(false, from, to[0]);
    }
    unsupported("an operation of a lattice network", "operator " + std::to_string(code));
  }

  void unary(Kind kind, std::int32_t from, std::int32_t to) {
    Step step;
    step.kind = kind;
    step.from = {known(from)};
    step.to = {made(to)};
    check(kind == Kind::fill ? size(step.from[0]) == 1 : size(step.from[0]) == size(step.to[0]),
          "one size before and after");
    result_.steps_.push_back(std::move(step));
  }

  void binary(Kind kind, const std::vector<std::int32_t>& from, std::int32_t to) {
    check(from.size() == 2, "two inputs");
    Step step;
    step.kind = kind;
    step.from = {known(from[0]), known(from[1])};
    step.to = {made(to)};
    const std::vector<std::size_t>& out = shape(step.to[0]);
    for (const std::size_t input : step.from) {
      const std::vector<std::size_t>& in = shape(input);
      check(in.size() <= out.size(), "inputs with no more axes than the output");
      for (std::size_t axis = 0; axis < in.size(); ++axis) {
        const std::size_t extent = out[out.size() - in.size() + axis];
        check(in[axis] == extent || in[axis] == 1, "extents that broadcast");
      }
    }
    result_.steps_.push_back(std::move(step));
  }

  void concatenate(const std::vector<std::int32_t>& from, std::int32_t to) {
    Step step;
    step.kind = Kind::concatenate;
    std::int64_t total = 0;
    for (const std::int32_t tensor : from) {
      step.from.push_back(known(tensor));
      check(is_row(step.from.back()), "rows to join");
      total += static_cast<std::int64_t>(size(step.from.back()));
    }
    step.to = {made(to)};
    // Files state the shape as it would be if parts of unknown extent were absent.
    place(result_.tensors_[step.to[0]], {1, total});
    result_.steps_.push_back(std::move(step));
  }

  void split(std::int32_t from, const std::vector<std::int32_t>& to) {
    Step step;
    step.kind = Kind::split;
    step.from = {known(from)};
    std::size_t total = 0;
    for (const std::int32_t tensor : to) {
      step.to.push_back(made(tensor));
      check(is_row(step.to.back()) && size(step.to.back()) == size(step.to[0]), "equal parts of a row");
      total += size(step.to.back());
    }
    check(is_row(step.from[0]) && total == size(step.from[0]), "parts that make up a row");
    result_.steps_.push_back(std::move(step));
  }

  void product(bool transposed, const std::vector<std::int32_t>& from, std::int32_t to) {
    Step step;
    step.kind = Kind::product;
    step.transposed = transposed;
    step.from = {known(from[0]), known(from[1])};
    step.to = {made(to)};
    const auto &left = shape(step.from[0]), &right = shape(step.from[1]), &out = shape(step.to[0]);
    check(!left.empty() && right.size() >= 2 && !out.empty(), "a product of matrices");
    const std::size_t inner = left.back(), columns = out.back();
    check(right[right.size() - 1] == (transposed ? inner : columns) &&
              right[right.size() - 2] == (transposed ? columns : inner) &&
              size(step.from[1]) == inner * columns &&
              size(step.from[0]) / inner == size(step.to[0]) / columns,
          "matching sizes in a product of one matrix");
    products_ += size(step.to[0]) * inner;
    check(products_ <= kMaxProducts, "up to 2^28 multiplications");
    result_.steps_.push_back(std::move(step));
  }

  void check(bool good, const char* expected) const {
    if (!good) unsupported(expected, "something else");
  }
  bool is_row(std::size_t tensor) const {
    return !shape(tensor).empty() && shape(tensor).back() == size(tensor);
  }
  std::size_t size(std::size_t tensor) const { return result_.tensors_[tensor].size; }
  const std::vector<std::size_t>& shape(std::size_t tensor) const { return result_.tensors_[tensor].shape; }
  std::size_t index(std::int32_t tensor) const {
    if (tensor < 0 || static_cast<std::size_t>(tensor) >= result_.tensors_.size()) {
      file_.fail("expected a tensor below " + std::to_string(result_.tensors_.size()) + ", got " +
                 std::to_string(tensor));
    }
    return static_cast<std::size_t>(tensor);
  }
  // An input of an operation.
  std::size_t known(std::int32_t tensor) const {
    const std::size_t i = index(tensor);
    if (!result_.tensors_[i].known) file_.fail("tensor " + std::to_string(i) + " is used before it is made");
    return i;
  }
  // An output of an operation.
  std::size_t made(std::int32_t tensor) {
    const std::size_t i = index(tensor);
    if (result_.tensors_[i].size == 0) unsupported("f32 results", "another type");
    if (result_.tensors_[i].known) file_.fail("tensor " + std::to_string(i) + " is made twice");
    result_.tensors_[i].known = true;
    return i;
  }

  FlatBuffer file_;
  std::string name_;
  TfliteGraph result_;
  std::size_t products_ = 0;  // so far
};

Result<TfliteGraph> TfliteGraph::open(const std::string& path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  return parse(file->bytes(), path);
}

Result<TfliteGraph> TfliteGraph::parse(std::span<const std::byte> bytes, const std::string& name) {
  try {
    return Loader(bytes, name).load();
  } catch (const ResultError& error) {
    return error.error();
  }
}

}  // namespace tessera::metrics
