#include "train/quantizers/quantizer_learner.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "quantizers/row_blocks.h"
#include "train/named_state.h"

namespace tessera::train {
namespace {

constexpr int kRows = 64;  // encoded by a thread at a time

std::string name_of_codebook(int codebook, const std::string& part) {
  return std::to_string(codebook) + "." + part;
}

}  // namespace

// A codebook's part of exchange_. Without moving averages only the counts are there.
struct QuantizerLearner::Exchange {
  std::span<float> statistics;  // counts [size], sums [size, width]
  std::span<float> counts;      // the first part of them
};

QuantizerLearner::QuantizerLearner(const QuantizerLearnerOptions& options, int width, Parameters& parameters,
                                   const std::string& prefix)
    : options_(options), width_(width) {
  if (options.codebooks < 1 || options.dimension < 1) {
    fail("quantizer_learner", "at least one codebook of one dimension",
         std::to_string(options.codebooks) + " of " + std::to_string(options.dimension));
  }
  for (int i = 0; i < options.codebooks; ++i) {
    CodebookLearner learner({.size = options.codebook_size,
                             .dimension = width,
                             .decay = options.decay,
                             .epsilon = options.epsilon,
                             .dead_below = options.dead_below,
                             .seed = options.seed,
                             .stream = static_cast<std::uint64_t>(i)});
    usage_.emplace_back(options.codebook_size);
    if (averages()) {
      learners_.push_back(std::move(learner));
    } else {
      const Tensor first = learner.save().front().second;
      parameters_.push_back(parameters.add(prefix + name_of_codebook(i, "codewords"), first));
    }
  }
}

Tensor QuantizerLearner::codewords(int codebook) const {
  if (codebook < 0 || codebook >= codebooks()) {
    fail("quantizer_learner", "a codebook below " + std::to_string(codebooks()), std::to_string(codebook));
  }
  if (!averages()) return parameters_[to_size(codebook)].detached();
  return learners_[to_size(codebook)].save().front().second;
}

void QuantizerLearner::set_codewords(int codebook, std::span<const float> codewords) {
  if (averages()) {
    learners_[to_size(codebook)].start(codewords);
  } else {
    std::copy(codewords.begin(), codewords.end(), parameters_[to_size(codebook)].f32());
  }
}

Result<void> QuantizerLearner::set_codebooks(std::span<const std::pair<std::string, Tensor>> given) {
  const Shape shape{options_.codebook_size, width_};
  if (given.size() != to_size(codebooks())) {
    return Error{ErrorCode::mismatch, "expected " + std::to_string(codebooks()) + " codebooks, got " +
                                          std::to_string(given.size())};
  }
  for (const auto& [name, codewords] : given) {
    if (codewords.shape() == shape) continue;
    return Error{ErrorCode::mismatch,
                 "expected codebook " + name + " " + shape.str() + ", got " + codewords.shape().str()};
  }
  for (int i = 0; i < codebooks(); ++i) {
    const Tensor& codewords = given[to_size(i)].second;
    set_codewords(i, {codewords.f32(), to_size(codewords.size())});
  }
  return {};
}

Random QuantizerLearner::random_for_start(int codebook) const {
  // Apart from the streams of the codebooks (quantizers/codebook_learning.cpp), which count from 0.
  return Random(options_.seed, (std::uint64_t{1} << 32) + static_cast<std::uint64_t>(codebook));
}

Tensor QuantizerLearner::encode(const Tensor& z, std::span<const int> active, ThreadPool& pool) const {
  const Shape& shape = z.shape();
  if (!z.defined() || z.dtype() != DType::f32 || shape.rank() != 3 || shape[2] != dimension() ||
      shape.size() == 0) {
    fail("quantizer_learner", "f32 latents [B, T, " + std::to_string(dimension()) + "] with at least one row",
         z.defined() ? std::string(name_of(z.dtype())) + " " + shape.str() : "an undefined tensor");
  }
  if (static_cast<std::int64_t>(active.size()) != shape[0]) {
    fail("quantizer_learner", "a number of codebooks for each of " + std::to_string(shape[0]) + " items",
         std::to_string(active.size()));
  }
  for (const int count : active) {
    if (count < 1 || count > codebooks()) {
      fail("quantizer_learner", "1 to " + std::to_string(codebooks()) + " codebooks for an item",
           std::to_string(count));
    }
  }
  // Made anew each time: an optimizer or a swap of averages moves parameters without telling.
  const std::unique_ptr<const Quantizer> quantizer = runtime();
  const int length = static_cast<int>(shape[1]), all = codebooks(), blocks = (length + kRows - 1) / kRows;
  Tensor tokens = Tensor::zeros({shape[0], shape[1], all}, DType::i32);
  const std::size_t room =
      quantizer->workspace_bytes(kRows) + Workspace::padded(to_size(kRows * all) * sizeof(std::int32_t));
  for_each_with_workspace(pool, static_cast<int>(shape[0]) * blocks, room, [&](int i, StepContext& context) {
    const int item = i / blocks, first = i % blocks * kRows, rows = std::min(kRows, length - first);
    const int count = active[to_size(item)];
    const std::size_t at = to_size(item) * to_size(length) + to_size(first);
    const auto found = context.workspace.array<std::int32_t>(Workspace::Side::high, to_size(rows * count));
    quantizer->encode(z.f32() + at * to_size(dimension()), rows, count, found.data(), context);
    std::int32_t* out = tokens.as<std::int32_t>() + at * to_size(all);
    for (int row = 0; row < rows; ++row, out += all) {
      std::copy_n(found.data() + row * count, count, out);
      std::fill(out + count, out + all, -1);
    }
  });
  return tokens;
}

QuantizerLearner::Exchange QuantizerLearner::exchange_of(int codebook) {
  const std::size_t size = to_size(options_.codebook_size);
  const std::size_t all = averages() ? size * (to_size(width_) + 1) : size;
  if (exchange_.empty()) exchange_.resize(all * to_size(codebooks()));
  const std::span<float> part = std::span(exchange_).subspan(to_size(codebook) * all, all);
  return {part, part.first(size)};
}

Tensor QuantizerLearner::observe(int codebook, const float* rows, std::span<const std::int32_t> indices,
                                 bool collect, ThreadPool& pool) {
  if (averages()) {
    if (!collect) return {};
    collected_ = true;
    learners_[to_size(codebook)].collect(rows, indices, exchange_of(codebook).statistics, pool);
    return {};
  }
  // d/de of the sum of |row - e|^2 over the rows of a codeword e: 2 (count e - sum).
  const Tensor& codewords = parameters_[to_size(codebook)];
  const int size = options_.codebook_size;
  std::vector<float> counts(to_size(size));
  Tensor gradient = Tensor::zeros(codewords.shape());
  sum_clusters(rows, indices, width_, size, counts.data(), gradient.f32(), pool);
  for (std::int64_t i = 0; i < gradient.size(); ++i) {
    gradient.f32()[i] = 2.0f * (counts[to_size(i / width_)] * codewords.f32()[i] - gradient.f32()[i]);
  }
  if (collect) {
    collected_ = true;
    const std::span<float> to = exchange_of(codebook).counts;
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += counts[i];
  }
  return gradient;
}

Result<void> QuantizerLearner::update(std::uint64_t step, ThreadPool& pool, const RankGroup& ranks) {
  if (!collected_) fail("quantizer_learner", "a forward pass that collects before an update", "none");
  if (ranks.rank < 0 || ranks.rank >= ranks.count || (ranks.count > 1 && !ranks.all_reduce)) {
    fail("quantizer_learner", "a rank within the group and a way to add up",
         "rank " + std::to_string(ranks.rank) + " of " + std::to_string(ranks.count));
  }
  if (ranks.all_reduce) ranks.all_reduce(exchange_);
  const auto forget = [&] {
    std::fill(exchange_.begin(), exchange_.end(), 0.0f);
    collected_ = false;
  };
  if (!std::all_of(exchange_.begin(), exchange_.end(), [](float v) { return std::isfinite(v); })) {
    forget();
    return Error{ErrorCode::damaged, "codebooks, step " + std::to_string(step) +
                                         ": expected finite latents, got NaN or infinity"};
  }
  for (int i = 0; i < codebooks(); ++i) {
    const Exchange exchange = exchange_of(i);
    usage_[to_size(i)].add(exchange.counts);
    if (!averages()) continue;
    learners_[to_size(i)].update(exchange.statistics, step, pool).value();  // finite: checked
  }
  forget();
  return {};
}

std::vector<CodebookHealth> QuantizerLearner::health() const {
  std::vector<CodebookHealth> health;
  for (const CodebookUsage& usage : usage_) health.push_back({usage.perplexity(), usage.unused()});
  return health;
}

void QuantizerLearner::reset_health() {
  for (CodebookUsage& usage : usage_) usage.reset();
}

NamedTensors QuantizerLearner::save() const {
  NamedTensors state;
  for (int i = 0; i < codebooks(); ++i) {
    if (averages()) {
      for (const auto& [name, tensor] : learners_[to_size(i)].save())
        state.emplace_back(name_of_codebook(i, name), tensor);
    }
    state.emplace_back(name_of_codebook(i, "usage"), usage_[to_size(i)].counts());
  }
  return state;
}

Result<void> QuantizerLearner::restore(std::span<const std::pair<std::string, Tensor>> state) {
  return copy_state(state, save(), "the quantizer");
}

std::vector<int> sample_active(Random& random, int batch, int codebooks, const DropoutOptions& options) {
  for (const int choice : options.choices) {
    if (choice < 1 || choice > codebooks) {
      fail("sample_active", "choices from 1 to " + std::to_string(codebooks), std::to_string(choice));
    }
  }
  if (batch < 0 || codebooks < 1) {
    fail("sample_active", "a batch and at least one codebook",
         std::to_string(batch) + " and " + std::to_string(codebooks));
  }
  std::vector<int> active;
  for (int i = 0; i < batch; ++i) {
    if (random.uniform() < options.all) {
      active.push_back(codebooks);
    } else if (options.choices.empty()) {
      active.push_back(1 + static_cast<int>(random.below(codebooks)));
    } else {
      const auto choice = random.below(static_cast<std::int64_t>(options.choices.size()));
      active.push_back(options.choices[static_cast<std::size_t>(choice)]);
    }
  }
  return active;
}

}  // namespace tessera::train
