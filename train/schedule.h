// The learning rate as a function of the step: a linear warm-up, then constant, a line or half a cosine
// (Loshchilov and Hutter 2017, without restarts) down to a floor.
#pragma once

#include <cstdint>

namespace tessera::train {

enum class ScheduleShape : std::uint8_t { constant, linear, cosine };

struct Schedule {
  ScheduleShape shape = ScheduleShape::cosine;
  double peak = 1e-3;             ///< the learning rate after the warm-up
  double floor = 0.0;             ///< the last one, as a part of the peak; not for `constant`
  std::int64_t warmup_steps = 0;  ///< the first step has peak / warmup_steps
  std::int64_t steps = 1;         ///< of the whole run; later steps keep the last rate
};

/// The learning rate of `step`, from 0.
double learning_rate(const Schedule& schedule, std::int64_t step);

}  // namespace tessera::train
