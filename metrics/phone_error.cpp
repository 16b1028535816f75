#include "metrics/phone_error.h"

#include <algorithm>

namespace tessera::metrics {

Result<double> phone_error(const PhoneClassifier& classifier, std::span<const float> sound,
                           int sample_rate_hz, std::span<const std::int32_t> labels, ThreadPool& pool) {
  const Result<Tensor> logits = classifier.logits(sound, sample_rate_hz, pool);
  if (!logits) return logits.error();
  const std::int64_t classes = logits->dim(1);
  const auto frames = std::min(logits->dim(0), static_cast<std::int64_t>(labels.size()));
  std::int64_t counted = 0, wrong = 0;
  for (std::int64_t i = 0; i < frames; ++i) {
    const std::int32_t label = labels[static_cast<std::size_t>(i)];
    if (label <= 0) continue;
    const float* row = logits->f32() + i * classes;
    ++counted;
    wrong += std::max_element(row, row + classes) - row != label;
  }
  if (counted == 0) {
    return Error{ErrorCode::format, "expected phones in the alignment within the sound, got none in " +
                                        std::to_string(frames) + " frames"};
  }
  return 100 * static_cast<double>(wrong) / static_cast<double>(counted);
}

}  // namespace tessera::metrics
