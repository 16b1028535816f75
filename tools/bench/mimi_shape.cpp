// bench_mimi_shape: a Mimi of the published size with random weights, for timing it beside other
// implementations (tools/bench/peers.py). It writes such a model in kyutai's layout, which they all load, and
// streams through it on command: a line "encode N" or "decode N" on standard input pushes the next N frames
// of the given sound or tokens one at a time, and is answered by a JSON line with every frame's milliseconds
// and what came out. One thread.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "codec/codec.h"
#include "codec/mimi_names.h"
#include "core/cpu.h"
#include "core/mapped_file.h"
#include "core/safetensors.h"
#include "tests/codec/small_models.h"

namespace tessera {
namespace {

constexpr int kHeads = 8;

// Copies the rows of one projection [C, C] to their place in q, k and v joined [3C, C], where the rows of q
// and k pair neighbouring channels (codec/mimi_names.h).
void join(const TensorView& projection, char which, std::vector<std::byte>& joined) {
  const int channels = static_cast<int>(projection.shape[0]), dim = channels / kHeads;
  const std::size_t row_bytes = projection.bytes.size() / static_cast<std::size_t>(channels);
  const int first = (which == 'q' ? 0 : which == 'k' ? 1 : 2) * channels;
  joined.resize(3 * projection.bytes.size());
  for (int from = 0; from < channels; ++from) {
    const int head = from / dim, half = from % dim / (dim / 2), pair = from % (dim / 2);
    const int to = first + (which == 'v' ? from : head * dim + 2 * pair + half);
    std::memcpy(joined.data() + static_cast<std::size_t>(to) * row_bytes,
                projection.bytes.data() + static_cast<std::size_t>(from) * row_bytes, row_bytes);
  }
}

void write_model(const std::string& path) {
  const std::string bytes = test::mimi_weights(test::kPublishedMimi);
  const auto file = SafeTensors::parse(std::as_bytes(std::span(bytes)), "random model").value();
  constexpr std::string_view kAttention = "self_attn.", kUsage = "cluster_usage";
  constexpr std::int64_t kChannels = test::kPublishedMimi.channels;
  const float one = 1;
  std::vector<NamedTensor> tensors;
  std::map<std::string, std::vector<std::byte>> joined;  // by name
  for (const std::string& name : file->names()) {
    const TensorView view = *file->find(name);
    if (const std::size_t at = name.find(kAttention); at != std::string::npos) {
      const std::size_t part = at + kAttention.size();
      if (const char which = name[part]; name.substr(part + 1) == "_proj.weight" && which != 'o') {
        join(view, which, joined[kyutai_name(name.substr(0, part)) + "in_proj_weight"]);
        continue;
      }
    }
    tensors.push_back({kyutai_name(name), view.dtype, view.shape, view.bytes});
    if (name.ends_with(kUsage)) {  // PyTorch's module has a flag beside it that is in every published file
      const std::string codebook = name.substr(0, name.size() - kUsage.size());
      tensors.push_back(
          {kyutai_name(codebook) + "_initialized", DType::f32, {1}, std::as_bytes(std::span(&one, 1))});
    }
  }
  for (const auto& [name, values] : joined) {
    tensors.push_back({name, DType::f32, {3 * kChannels, kChannels}, values});
  }
  write_safetensors(path, tensors).value();
}

// A file of plain values, native byte order, taken a frame at a time.
template <class T>
class Frames {
 public:
  Frames(const std::string& path, int frame) : file_(MappedFile::open(path).value()) {
    frame_ = static_cast<std::size_t>(frame);
    values_ = {reinterpret_cast<const T*>(file_.bytes().data()), file_.bytes().size() / sizeof(T)};
  }
  std::span<const T> next() {
    if (values_.size() < frame_) {
      throw ResultError({ErrorCode::usage, "expected a longer input: all frames of it are used up"});
    }
    const std::span<const T> frame = values_.first(frame_);
    values_ = values_.subspan(frame_);
    return frame;
  }

 private:
  MappedFile file_;
  std::size_t frame_;
  std::span<const T> values_;
};

// Times `step(output)` `count` times; the answer holds {"ms": [...], "out": [...]}.
template <class T, class Step>
nlohmann::json timed(int count, Step step) {
  std::vector<double> ms;
  std::vector<std::vector<T>> out(static_cast<std::size_t>(count));
  for (std::vector<T>& output : out) {
    const auto start = std::chrono::steady_clock::now();
    step(output);
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return {{"ms", ms}, {"out", out}};
}

void serve(const std::string& model, const std::string& sound, const std::string& codes, int codebooks) {
  const auto codec = Codec::load(model).value();
  const StreamOptions options{.codebooks = codebooks, .threads = 1, .max_frames_per_step = 1};
  Encoder encoder = codec->encoder(options);
  Decoder decoder = codec->decoder(options);
  Frames<float> pcm(sound, codec->info().samples_per_frame);
  Frames<std::int32_t> tokens(codes, decoder.codebooks());

  nlohmann::json hello;
  hello["version"] = "f32, " + cpu_target();
  std::cout << hello << std::endl;
  std::string command;
  for (int count = 0; std::cin >> command >> count;) {
    if (command == "encode") {
      std::cout << timed<std::int32_t>(count, [&](std::vector<std::int32_t>& out) {
        encoder.push(pcm.next(), [&](const Frame& f) { out.assign(f.tokens.begin(), f.tokens.end()); });
      });
    } else if (command == "decode") {
      std::cout << timed<float>(count, [&](std::vector<float>& out) {
        const auto keep = [&](std::span<const float> part) { out.assign(part.begin(), part.end()); };
        decoder.push(tokens.next(), keep).value();
      });
    } else {
      throw ResultError({ErrorCode::usage, "expected \"encode N\" or \"decode N\", got \"" + command + "\""});
    }
    std::cout << std::endl;
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    tessera::set_cpu_target_from_environment().value();
    if (arguments.size() == 2 && arguments[0] == "--write") {
      tessera::write_model(arguments[1]);
    } else if (int codebooks = 0; arguments.size() == 4 && std::istringstream(arguments[3]) >> codebooks) {
      tessera::serve(arguments[0], arguments[1], arguments[2], codebooks);
    } else {
      std::cerr << "usage: bench_mimi_shape --write MODEL\n"
                   "       bench_mimi_shape MODEL SOUND.f32 TOKENS.i32 CODEBOOKS\n";
      return 2;
    }
  } catch (const std::exception& error) {
    std::cerr << "bench_mimi_shape: " << error.what() << '\n';
    return 1;
  }
}
