// Vector quantizers while they learn: what residual and factorized ones share. Gradients pass straight
// through the rounding (van den Oord et al. 2017); codebooks follow the latents by moving averages, or by a
// loss of their own (Kumar et al. 2023). Tokens come from the runtime's quantizer (quantizers/), so what was
// trained is what a file codes. docs/quantizer-learning.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/autograd/tape.h"
#include "core/random.h"
#include "core/result.h"
#include "quantizers/codebook_learning.h"
#include "quantizers/quantizer.h"
#include "train/parameters.h"

namespace tessera::train {

struct QuantizerLearnerOptions {
  int codebooks = 8;
  int codebook_size = 1024;
  int dimension = 128;             ///< of the latents
  int search_paths = 1;            ///< ResidualVq's; others have one
  bool codebook_gradient = false;  ///< codewords are parameters with a loss of their own: no moving averages
  bool normalize_loss = true;      ///< squared errors relative to the mean square of what is quantized
  float decay = 0.99f;             ///< this and the next two: CodebookOptions
  float epsilon = 1e-5f;
  float dead_below = 0.4f;
  KMeansOptions kmeans = {};
  std::uint64_t seed = 0;
};

/// What a forward pass gives, for latents z [B, T, D].
struct Quantized {
  Tensor latents;        ///< [B, T, D]: what the decoder gets, with each item's own number of codebooks
  Tensor first;          ///< [B, T, D]: of the first codebook alone, for distillation
  Tensor commitment;     ///< [1]: mean of |residual - codeword|^2 over the levels in use; pulls the encoder
  Tensor codebook_loss;  ///< [1]: the same value, pulls the codewords; undefined with moving averages
  Tensor tokens;         ///< [B, T, codebooks], i32; -1 where an item does not use a codebook
};

/// Where this process stands among those that train together.
struct RankGroup {
  int rank = 0;
  int count = 1;
  AllReduce all_reduce = {};  ///< needed from two ranks on
};

struct CodebookHealth {
  double perplexity = 0;  ///< 1 to the codebook's size; 0 before anything was counted
  int unused = 0;         ///< codewords that were not chosen
};

class QuantizerLearner {
 public:
  virtual ~QuantizerLearner() = default;
  QuantizerLearner(const QuantizerLearner&) = delete;
  QuantizerLearner& operator=(const QuantizerLearner&) = delete;

  const QuantizerLearnerOptions& options() const { return options_; }
  int dimension() const { return options_.dimension; }
  int codebooks() const { return options_.codebooks; }

  /// Sets the codebooks from latents rows [count, D], level by level, by k-means of what the levels before
  /// left. Ranks must give the same rows. Throws UsageError for fewer rows than codewords.
  virtual void initialize(const float* rows, int count, ThreadPool& pool) = 0;

  /// Quantizes z [B, T, D], item i with the first active[i] codebooks, 1 to all. With `collect`, what
  /// update() needs is added up; several passes may go before one update. Throws UsageError for other shapes.
  virtual Quantized forward(Tape& tape, const Tensor& z, std::span<const int> active, bool collect) = 0;

  /// Once per step, after the forward passes (with `collect`): sums up what they saw over all ranks, moves
  /// the codebooks, replaces dead codewords and counts usage. Every rank calls it. Error (damaged), nothing
  /// changed but the sums forgotten: latents were not finite. Throws UsageError when nothing was collected.
  Result<void> update(std::uint64_t step, ThreadPool& pool, const RankGroup& ranks = {});

  /// The quantizer of a codec with the present codebooks.
  virtual std::unique_ptr<const Quantizer> runtime() const = 0;
  /// Sets the codebooks from a weights file's, [size, width] each, in order. Error (mismatch), nothing
  /// changed: their number or a shape is another.
  Result<void> set_codebooks(std::span<const std::pair<std::string, Tensor>> codebooks);
  /// [size, width] of a codebook, for a weights file; shares the storage.
  Tensor codewords(int codebook) const;

  /// Of each codebook, over all ranks since the last reset_health().
  std::vector<CodebookHealth> health() const;
  void reset_health();

  /// State besides the parameters: `<codebook>.codewords`, `.sizes`, `.sums` (moving averages only) and
  /// `.usage`. Shares the storage: copy it to keep it. Complete between an update and the next forward pass.
  NamedTensors save() const;
  /// Takes what save() gave. Error (mismatch), nothing changed: a tensor is missing, too many or of another
  /// shape.
  Result<void> restore(std::span<const std::pair<std::string, Tensor>> state);

 protected:
  /// `width`: dimension of the codewords. With codebook_gradient they become `<prefix><codebook>.codewords`.
  QuantizerLearner(const QuantizerLearnerOptions& options, int width, Parameters& parameters,
                   const std::string& prefix);

  int width() const { return width_; }
  bool averages() const { return !options_.codebook_gradient; }
  /// The codewords as a parameter, where they are one.
  const Tensor& codeword_parameter(int codebook) const { return parameters_[to_size(codebook)]; }
  void set_codewords(int codebook, std::span<const float> codewords);
  Random random_for_start(int codebook) const;

  /// Checks the arguments of forward() and returns its tokens.
  Tensor encode(const Tensor& z, std::span<const int> active, ThreadPool& pool) const;
  /// What `codebook` quantized, rows [indices.size(), width], and the codewords that they chose: adds to the
  /// sums for update() if `collect`. Returns the gradient of the squared error with respect to the codewords,
  /// if they are parameters.
  Tensor observe(int codebook, const float* rows, std::span<const std::int32_t> indices, bool collect,
                 ThreadPool& pool);

  static std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

 private:
  struct Exchange;
  Exchange exchange_of(int codebook);

  QuantizerLearnerOptions options_;
  int width_;
  std::vector<CodebookLearner> learners_;  // empty with codebook_gradient
  std::vector<Tensor> parameters_;         // empty without
  std::vector<CodebookUsage> usage_;
  std::vector<float> exchange_;  // what ranks add up, codebook after codebook
  bool collected_ = false;       // whether exchange_ holds anything
};

/// How many codebooks each item of a batch uses (quantizer dropout, SoundStream; Kumar et al. 2023 for the
/// share that keeps all).
struct DropoutOptions {
  float all = 0.5f;               ///< probability of all codebooks
  std::vector<int> choices = {};  ///< otherwise one of these, equally likely; empty: 1 to all
};
std::vector<int> sample_active(Random& random, int batch, int codebooks, const DropoutOptions& options = {});

}  // namespace tessera::train
