#include "train/model_file.h"

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "core/error.h"

namespace tessera::train {
namespace {

// Axis i of the result is axis order[i] of x [a, b, c].
Tensor permuted(const Tensor& x, const std::array<int, 3>& order) {
  const Shape shape{x.dim(order[0]), x.dim(order[1]), x.dim(order[2])};
  std::array<std::int64_t, 3> strides{x.dim(1) * x.dim(2), x.dim(2), 1};
  Tensor y = Tensor::zeros(shape);
  float* to = y.f32();
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    for (std::int64_t j = 0; j < shape[1]; ++j) {
      for (std::int64_t k = 0; k < shape[2]; ++k) {
        *to++ = x.f32()[i * strides[static_cast<std::size_t>(order[0])] +
                        j * strides[static_cast<std::size_t>(order[1])] +
                        k * strides[static_cast<std::size_t>(order[2])]];
      }
    }
  }
  return y;
}

// Names of the transposed convolutions' weights: files hold them [in, out, kernel], others [out, in, kernel].
bool is_transposed(const TesseraConfig& config, const std::string& name) {
  const auto fits = [&](const TesseraBlock& block) {
    return block.kind == TesseraBlock::Kind::conv_transpose && block.name + ".weight" == name;
  };
  return std::ranges::any_of(config.encoder, fits) || std::ranges::any_of(config.decoder, fits);
}

// What Parameters holds of a model; the rest of them is only used in training.
bool is_weight(const std::string& name) {
  return name.starts_with("encoder.") || name.starts_with("decoder.") ||
         (name.starts_with("quantizer.") && !name.ends_with(".codebook") && !name.ends_with(".codewords"));
}

// [a, b] -> [b, a]
Tensor turned(const Tensor& x) {
  return permuted(x.reshaped({1, x.dim(0), x.dim(1)}), {2, 1, 0}).reshaped({x.dim(1), x.dim(0)});
}

// Convolutions [kernel, in, out] and projections [in, out] of training, in a file's layout and back.
Tensor to_file(const TesseraConfig& config, const std::string& name, const Tensor& x) {
  if (x.shape().rank() == 2) return turned(x);
  if (x.shape().rank() != 3) return x;
  return permuted(x, is_transposed(config, name) ? std::array{1, 2, 0} : std::array{2, 1, 0});
}

Tensor from_file(const TesseraConfig& config, const std::string& name, const Tensor& x) {
  if (x.shape().rank() == 2) return turned(x);
  if (x.shape().rank() != 3) return x;
  return permuted(x, is_transposed(config, name) ? std::array{2, 0, 1} : std::array{2, 1, 0});
}

Tensor read(const SafeTensors& file, const std::string& name) {
  const TensorView view = file.get(name).value();
  const std::vector<float> values = file.read_f32(name).value();
  Tensor tensor = Tensor::zeros(view.shape);
  std::copy(values.begin(), values.end(), tensor.f32());
  return tensor;
}

ModelFile read_all(const SafeTensors& file) {
  ModelFile model;
  const auto config = file.metadata("config");
  if (!config)
    throw ResultError({ErrorCode::mismatch, "expected a model of the tessera family, got no \"config\""});
  model.config = parse_tessera_config(*config);
  model.tables.basis = read(file, "transform.basis");
  model.tables.scale = read(file, "transform.scale");
  const Shape basis{model.config.hop, model.config.window};
  if (model.tables.basis.shape() != basis || model.tables.scale.shape() != Shape{model.config.hop}) {
    throw ResultError({ErrorCode::mismatch, "expected transform.basis " + basis.str() +
                                                " and as many scales, got " +
                                                model.tables.basis.shape().str()});
  }
  for (const std::string& name : file.names()) {
    if (is_weight(name)) model.weights.emplace_back(name, from_file(model.config, name, read(file, name)));
  }
  for (int i = 0; i < model.config.codebooks; ++i) {
    model.codebooks.emplace_back(std::to_string(i),
                                 read(file, "quantizer." + std::to_string(i) + ".codebook"));
  }
  return model;
}

// Tensors on the way to a file, with the bytes that they are written as.
class Tensors {
 public:
  void add(std::string name, const Tensor& tensor, DType type) {
    Tensor stored = tensor.detached();
    if (type == DType::bf16) {
      stored = Tensor::zeros(tensor.shape(), DType::bf16);
      std::transform(tensor.f32(), tensor.f32() + tensor.size(), stored.as<std::uint16_t>(), f32_to_bf16);
    }
    NamedTensor named;
    named.name = std::move(name);
    named.dtype = type;
    named.shape = tensor.shape();
    named.bytes = std::as_bytes(std::span(static_cast<const char*>(stored.raw()), stored.bytes()));
    list_.push_back(std::move(named));
    kept_.push_back(std::move(stored));
  }
  std::span<const NamedTensor> list() const { return list_; }

 private:
  std::vector<NamedTensor> list_;
  std::vector<Tensor> kept_;  // what `bytes` point into
};

}  // namespace

Result<ModelFile> read_model_file(const std::string& path) {
  const auto file = SafeTensors::open(path);
  if (!file) return file.error();
  try {
    return read_all(**file);
  } catch (const ResultError& error) {
    return Error{error.error().code, path + ": " + error.error().message};
  }
}

Result<void> write_model_file(const std::string& path, const CodecModel& model, const Parameters& parameters,
                              const QuantizerLearner& quantizer, DType type, Metadata metadata) {
  if (type != DType::f32 && type != DType::bf16) fail("write_model_file", "f32 or bf16", name_of(type));
  Tensors tensors;
  tensors.add("transform.basis", model.tables().basis, DType::f32);
  tensors.add("transform.scale", model.tables().scale, DType::f32);
  for (const auto& [name, value] : parameters.values()) {
    if (is_weight(name)) tensors.add(name, to_file(model.config(), name, value), type);
  }
  for (int i = 0; i < quantizer.codebooks(); ++i) {
    tensors.add("quantizer." + std::to_string(i) + ".codebook", quantizer.codewords(i), type);
  }
  metadata["config"] = to_json(model.config());
  return write_safetensors(path, tensors.list(), metadata);
}

}  // namespace tessera::train
