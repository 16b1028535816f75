// How many phones a sound loses: what the phone classifier hears in it, frame by frame, against an alignment
// of what was said. The reference is not heard: what the classifier gets wrong by itself counts, too, so an
// untouched recording does not score 0.
#pragma once

#include <cstdint>
#include <span>

#include "core/result.h"
#include "core/thread_pool.h"
#include "metrics/phone_classifier.h"

namespace tessera::metrics {

/// Per cent of the frames within phones whose likeliest class is another one. `labels`: the class of each
/// frame of 10 ms as PhoneClassifier numbers them; frames of silence (0), those without label (negative) and
/// those beyond the sound or the labels do not count. Errors: those of PhoneClassifier::logits; format (no
/// frame that counts).
Result<double> phone_error(const PhoneClassifier& classifier, std::span<const float> sound,
                           int sample_rate_hz, std::span<const std::int32_t> labels, ThreadPool& pool);

}  // namespace tessera::metrics
