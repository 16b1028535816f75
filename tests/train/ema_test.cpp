#include "train/ema.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/train/run_support.h"

namespace tessera::train {
namespace {

using test::floats_of;
using test::tensor_of;

TEST(WeightAverage, FollowsQuicklyAtFirst) {
  ThreadPool pool;
  Parameters parameters;
  Tensor w = parameters.add("w", tensor_of({2}, {0, 8}));
  WeightAverage average(parameters.items(), 0.5);
  w.f32()[0] = 10;
  average.update(pool, 0);  // keeps (1 + 0) / (10 + 0)
  EXPECT_FLOAT_EQ(average.save()[0].second.f32()[0], 9.0f);
  EXPECT_FLOAT_EQ(average.save()[0].second.f32()[1], 8.0f);
  average.update(pool, 100);  // keeps 0.5: 101 / 110 is more
  EXPECT_FLOAT_EQ(average.save()[0].second.f32()[0], 9.5f);
}

TEST(WeightAverage, SwapsInAndBack) {
  ThreadPool pool;
  Parameters parameters;
  Tensor w = parameters.add("w", tensor_of({2}, {1, 2}));
  WeightAverage average(parameters.items(), 0.9);
  w.f32()[0] = 5;
  {
    const WeightAverage::Swap swap(average);
    EXPECT_EQ(floats_of(w), (std::vector<float>{1, 2}));
  }
  EXPECT_EQ(floats_of(w), (std::vector<float>{5, 2}));
  EXPECT_EQ(floats_of(average.save()[0].second), (std::vector<float>{1, 2}));
}

TEST(WeightAverage, RestoresWhatItSaved) {
  ThreadPool pool;
  Parameters parameters;
  parameters.add("w", tensor_of({2}, {1, 2}));
  WeightAverage average(parameters.items(), 0.9);
  const NamedTensors saved = {{"w", tensor_of({2}, {7, 8})}};
  ASSERT_TRUE(average.restore(saved));
  EXPECT_EQ(floats_of(average.save()[0].second), (std::vector<float>{7, 8}));
  const NamedTensors other = {{"v", tensor_of({2}, {7, 8})}};
  EXPECT_EQ(average.restore(other).error().message,
            "state of the weight average: expected a tensor \"w\", got none");
  EXPECT_THROW(WeightAverage(parameters.items(), 1.0), UsageError);
}

}  // namespace
}  // namespace tessera::train
