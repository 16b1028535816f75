#include "tests/codec/support.h"

#include <cmath>
#include <limits>

#include "codec/model.h"

namespace tessera::test {
namespace {

template <class T>
std::vector<T> transposed(const Tensor& tensor, std::int64_t rows) {
  const std::int64_t columns = tensor.dim(1);
  std::vector<T> result;
  for (std::int64_t column = 0; column < columns; ++column) {
    for (std::int64_t row = 0; row < rows; ++row) result.push_back(tensor.as<T>()[row * columns + column]);
  }
  return result;
}

// Calls body(first, count) for consecutive pieces of `size` things.
template <class Body>
void in_pieces(std::size_t size, const Pieces& pieces, const Body& body) {
  std::size_t at = 0;
  for (std::size_t i = 0; at < size; ++i) {
    const std::size_t count = std::min(pieces[i % pieces.size()], size - at);
    body(at, count);
    at += count;
  }
}

}  // namespace

std::vector<std::int32_t> encode(Encoder& encoder, std::span<const float> pcm, const Pieces& pieces) {
  std::vector<std::int32_t> tokens;
  std::int64_t frames = 0;
  const auto collect = [&](const Frame& frame) {
    EXPECT_EQ(frame.index, frames++);
    tokens.insert(tokens.end(), frame.tokens.begin(), frame.tokens.end());
  };
  in_pieces(pcm.size(), pieces,
            [&](std::size_t at, std::size_t count) { encoder.push(pcm.subspan(at, count), collect); });
  encoder.flush(collect);
  return tokens;
}

std::vector<float> decode(Decoder& decoder, std::span<const std::int32_t> tokens, const Pieces& pieces) {
  std::vector<float> pcm;
  const auto collect = [&](std::span<const float> part) { pcm.insert(pcm.end(), part.begin(), part.end()); };
  const std::size_t frame = static_cast<std::size_t>(decoder.codebooks());
  in_pieces(tokens.size() / frame, pieces, [&](std::size_t at, std::size_t count) {
    decoder.push(tokens.subspan(at * frame, count * frame), collect).value();
  });
  decoder.flush(collect);
  return pcm;
}

Tensor reference(const std::string& path) {
  return read_npy(path).value();
}

std::vector<float> reference_latents(const std::string& path) {
  const Tensor tensor = reference(path);
  return transposed<float>(tensor, tensor.dim(0));
}

std::vector<std::int32_t> reference_tokens(const std::string& path, int rows) {
  const Tensor tensor = reference(path);
  return transposed<std::int32_t>(tensor, rows == 0 ? tensor.dim(0) : rows);
}

std::vector<float> latents(const Codec& codec, std::span<const float> pcm) {
  const Model& model = codec.model();
  std::vector<float> padded(pcm.begin(), pcm.end());
  const bool layers_pad = model.end == StreamEnd::layers_pad;
  if (!layers_pad) {
    const std::int64_t frames = codec.info().frames_for(static_cast<std::int64_t>(pcm.size()));
    padded.resize(static_cast<std::size_t>(frames * codec.info().samples_per_frame));
  }
  const int rows = static_cast<int>(padded.size());
  Workspace workspace(model.encoder->workspace_bytes(1, rows));
  ThreadPool pool(1);
  StepContext context{workspace, pool};
  std::vector<std::byte> state(model.encoder->state_bytes());
  model.encoder->init_state(state.data());
  std::byte* const block = state.data();
  const Tensor x = Tensor::view(padded.data(), {rows, 1});
  Sequences y = model.encoder->step({x, {&rows, 1}, {&layers_pad, 1}}, States({&block, 1}), context);
  return {y.rows.f32(), y.rows.f32() + y.rows.size()};
}

double max_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

}  // namespace tessera::test
