#include "core/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"

namespace tessera {
namespace {

TEST(Tensor, ZerosAreAlignedAndZero) {
  Tensor tensor = Tensor::zeros({2, 3, 5});
  EXPECT_EQ(tensor.size(), 30);
  EXPECT_EQ(tensor.bytes(), 120u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.raw()) % 64, 0u);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(tensor.f32()[i], 0.0f);
  EXPECT_EQ(tensor.shape().str(), "[2, 3, 5]");
}

TEST(Tensor, ReshapeSharesStorageAndChecksSize) {
  Tensor tensor = Tensor::zeros({4, 6});
  Tensor flat = tensor.reshaped({24});
  flat.f32()[7] = 3.0f;
  EXPECT_EQ(tensor.f32()[7], 3.0f);
  EXPECT_THROW((void)tensor.reshaped({5, 5}), UsageError);
}

TEST(Tensor, ShapeRefusesSixAxesAndNegativeExtents) {
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1}), UsageError);
  EXPECT_THROW(Shape({2, -1}), UsageError);
}

TEST(Tensor, Bf16RoundsToNearestEvenAndWidensExactly) {
  EXPECT_EQ(f32_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::nextafter(1.0f + 0x1p-8f, 2.0f)), 0x3f81);  // just above half: up
  EXPECT_EQ(f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);                        // tie: to even
  EXPECT_EQ(f32_to_bf16(1.0f + 3 * 0x1p-8f), 0x3f82);                    // tie: to even
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isinf(bf16_to_f32(f32_to_bf16(std::numeric_limits<float>::max()))));
  for (int bits = 0; bits < 0x7f80; ++bits) {
    ASSERT_EQ(f32_to_bf16(bf16_to_f32(static_cast<std::uint16_t>(bits))), bits);
  }
}

TEST(Tensor, F16WidensExactly) {
  EXPECT_EQ(f16_to_f32(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_f32(0xc000), -2.0f);
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);
  EXPECT_EQ(f16_to_f32(0x7bff), 65504.0f);
  EXPECT_TRUE(std::isinf(f16_to_f32(0x7c00)));
  EXPECT_TRUE(std::signbit(f16_to_f32(0x8000)));
}

}  // namespace
}  // namespace tessera
