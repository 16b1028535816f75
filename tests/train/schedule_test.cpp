#include "train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::train {
namespace {

Schedule ten_steps(ScheduleShape shape) {
  Schedule schedule;
  schedule.shape = shape;
  schedule.peak = 2.0;
  schedule.floor = 0.1;
  schedule.warmup_steps = 4;
  schedule.steps = 15;  // 4 of warm-up, then from step 4 to step 14
  return schedule;
}

TEST(Schedule, WarmsUpInALine) {
  for (const auto shape : {ScheduleShape::constant, ScheduleShape::linear, ScheduleShape::cosine}) {
    for (int step = 0; step < 4; ++step) {
      EXPECT_DOUBLE_EQ(learning_rate(ten_steps(shape), step), 0.5 * (step + 1));
    }
    EXPECT_DOUBLE_EQ(learning_rate(ten_steps(shape), 4), 2.0);
  }
}

TEST(Schedule, EndsAtTheFloor) {
  EXPECT_DOUBLE_EQ(learning_rate(ten_steps(ScheduleShape::constant), 14), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(ten_steps(ScheduleShape::linear), 9), 2.0 * (0.1 + 0.9 * 0.5));
  for (const auto shape : {ScheduleShape::linear, ScheduleShape::cosine}) {
    EXPECT_NEAR(learning_rate(ten_steps(shape), 14), 0.2, 1e-15);
    EXPECT_NEAR(learning_rate(ten_steps(shape), 1000), 0.2, 1e-15);
  }
}

TEST(Schedule, CosineIsHalfACosine) {
  for (int step = 4; step <= 14; ++step) {
    const double expected = 2.0 * (0.1 + 0.9 * (0.5 + 0.5 * std::cos(M_PI * (step - 4) / 10)));
    EXPECT_NEAR(learning_rate(ten_steps(ScheduleShape::cosine), step), expected, 1e-14);
  }
}

TEST(Schedule, WorksWithoutRoomForDecay) {
  Schedule schedule;
  schedule.peak = 1.0;
  schedule.steps = 1;
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 0), 1.0);
  schedule.warmup_steps = 10;
  schedule.steps = 5;
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 4), 0.5);
}

}  // namespace
}  // namespace tessera::train
