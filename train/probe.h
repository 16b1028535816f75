// How much of what is said can be read off features or tokens by the simplest reader: a linear classifier of
// phones (Alain and Bengio 2016 on probes). Ridge regression onto class indicators in closed form, so there
// is nothing to tune or to seed. Leaves out confusions and error bars.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "core/thread_pool.h"

namespace tessera::train {

/// Everywhere: a label is a class 0 to classes - 1; a negative one leaves its row out.
class LinearProbe {
 public:
  /// From features [M, D] (f32) with M labels, at least one of them a class. Columns are standardized; a
  /// constant one counts for nothing. `ridge` > 0 is the penalty per row on weights of standardized columns.
  /// Takes M D^2 double products. The same bits for any number of threads. Features that are not finite spoil
  /// the probe (it then answers class 0); they do no harm beyond it.
  static LinearProbe fit(const Tensor& features, std::span<const std::int32_t> labels, int classes,
                         ThreadPool& pool, double ridge = 1e-3);

  /// The likeliest class of each row of features [M, D]; the lower one of equals.
  std::vector<std::int32_t> predict(const Tensor& features, ThreadPool& pool) const;

 private:
  std::int64_t columns_ = 0;
  int classes_ = 0;
  std::vector<double> mean_, scale_;  // [D]; 1 / standard deviation, 0 for a constant column
  std::vector<double> weights_;       // [D, classes]
  std::vector<double> offset_;        // [classes]
};

/// The same question for one token per row, taken as a one-hot vector: the best linear reader is then the
/// class that was seen most often with each token. `smoothing` rows spread as all labels are stand in for
/// every token, so a rare token needs evidence to differ from the rest, and one never seen gets the commonest
/// class.
class TokenProbe {
 public:
  /// Tokens 0 to codes - 1, one for each label.
  static TokenProbe fit(std::span<const std::int32_t> tokens, std::span<const std::int32_t> labels, int codes,
                        int classes, double smoothing = 1.0);

  std::vector<std::int32_t> predict(std::span<const std::int32_t> tokens) const;

 private:
  std::vector<std::int32_t> answers_;  // [codes]
};

struct ProbeScore {
  double correct = 0;                  ///< share of the rows; 0 if there are none
  double correct_without_silence = 0;  ///< share of the rows whose label is not silence
  double commonest = 0;                ///< share of the commonest label: what guessing reaches
  std::int64_t rows = 0, rows_without_silence = 0;
};

/// Rows with a negative label are left out. `silence` is a class, or -1 for none.
ProbeScore score(std::span<const std::int32_t> predictions, std::span<const std::int32_t> labels,
                 std::int32_t silence = 0);

}  // namespace tessera::train
