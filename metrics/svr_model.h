// Support-vector regression with radial basis functions (nu-SVR, Schoelkopf et al. 2000), read from a text
// file of LIBSVM. Leaves out other kernels, classification and training.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace tessera::metrics {

class SvrModel {
 public:
  static constexpr std::size_t kMaxFeatures = 4096;

  /// Errors: io; format (line and what was expected); unsupported (another kind of model).
  static Result<SvrModel> open(const std::string& path);
  /// The same from the file's text; `name` stands for the file in errors.
  static Result<SvrModel> parse(std::string_view text, const std::string& name);

  /// Features that some vector has.
  std::size_t features() const { return features_; }
  /// Features that are not given count as 0, further ones add to the distance from every vector.
  double predict(std::span<const double> features) const;

 private:
  double gamma_ = 0, rho_ = 0;
  std::size_t features_ = 0;
  std::vector<double> weights_;
  std::vector<double> vectors_;  // [weights, features]
};

}  // namespace tessera::metrics
