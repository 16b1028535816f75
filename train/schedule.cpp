#include "train/schedule.h"

#include <algorithm>

#include "core/exact_math.h"

namespace tessera::train {

double learning_rate(const Schedule& schedule, std::int64_t step) {
  if (step < schedule.warmup_steps) {
    return schedule.peak * static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
  }
  if (schedule.shape == ScheduleShape::constant) return schedule.peak;
  // From 0 at the end of the warm-up to 1 at the last step.
  const double length =
      static_cast<double>(std::max<std::int64_t>(1, schedule.steps - 1 - schedule.warmup_steps));
  const double done = std::min(1.0, static_cast<double>(step - schedule.warmup_steps) / length);
  const double left =
      schedule.shape == ScheduleShape::linear ? 1 - done : 0.5 + 0.5 * exact_cos(3.141592653589793 * done);
  return schedule.peak * (schedule.floor + (1 - schedule.floor) * left);
}

}  // namespace tessera::train
