#include "core/workspace.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "core/error.h"

namespace tessera {
namespace {

using Side = Workspace::Side;

TEST(Workspace, StacksGrowTowardsEachOtherAligned) {
  Workspace workspace(4096);
  auto* low = static_cast<std::byte*>(workspace.allocate(Side::low, 100));
  auto* high = static_cast<std::byte*>(workspace.allocate(Side::high, 100));
  auto* low2 = static_cast<std::byte*>(workspace.allocate(Side::low, 1));
  EXPECT_EQ(low2 - low, 128);
  EXPECT_GT(high, low2);
  for (const void* at : {low, high, low2}) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 64, 0u);
  EXPECT_EQ(workspace.side_of(low), Side::low);
  EXPECT_EQ(workspace.side_of(low2), Side::low);
  EXPECT_EQ(workspace.side_of(high), Side::high);
  const int elsewhere = 0;
  EXPECT_EQ(workspace.side_of(&elsewhere), Side::high);
}

TEST(Workspace, EvenNothingHasASide) {
  Workspace workspace(1024);
  EXPECT_EQ(workspace.side_of(workspace.allocate(Side::low, 0)), Side::low);
  EXPECT_EQ(workspace.tensor(Side::high, {0, 5}).size(), 0);
}

TEST(Workspace, ReleasesOneSideToAMark) {
  Workspace workspace(4096);
  workspace.allocate(Side::low, 64);
  const Workspace::Mark mark = workspace.mark();
  void* first = workspace.allocate(Side::low, 64);
  workspace.allocate(Side::high, 64);
  workspace.release(Side::low, mark);
  EXPECT_EQ(workspace.mark().low, mark.low);
  EXPECT_NE(workspace.mark().high, mark.high);
  EXPECT_EQ(workspace.allocate(Side::low, 64), first);
  workspace.clear();
  EXPECT_EQ(workspace.mark().low + workspace.mark().high, 0u);
}

TEST(Workspace, ThrowsWhenItWasSizedTooSmall) {
  Workspace workspace(256);
  workspace.allocate(Side::low, 128);
  EXPECT_THROW(workspace.allocate(Side::high, 256), UsageError);
}

}  // namespace
}  // namespace tessera
