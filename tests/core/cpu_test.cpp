// The choice of instruction set: names, switching back and forth, refusal of what the machine does not have.
#include "core/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace tessera {
namespace {

// Leaves the process as the next test expects it.
class CpuTest : public ::testing::Test {
 protected:
  void TearDown() override {
    unsetenv("TESSERA_CPU");
    set_cpu_target("").value();
  }
};

TEST_F(CpuTest, ScalarIsAlwaysTheLastChoice) {
  const std::vector<std::string> names = available_cpu_targets();
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.back(), "scalar");
  EXPECT_EQ(std::count(names.begin(), names.end(), "scalar"), 1);
}

TEST_F(CpuTest, EveryTargetCanBeChosenAgainAndAgain) {
  for (int round = 0; round < 2; ++round) {
    for (const std::string& name : available_cpu_targets()) {
      ASSERT_TRUE(set_cpu_target(name));
      EXPECT_EQ(cpu_target(), name);
    }
  }
}

TEST_F(CpuTest, TheEmptyNameLiftsTheChoice) {
  ASSERT_TRUE(set_cpu_target("scalar"));
  ASSERT_TRUE(set_cpu_target(""));
  EXPECT_EQ(cpu_target(), available_cpu_targets().front());
}

TEST_F(CpuTest, AnUnknownNameIsRefusedAndChangesNothing) {
  ASSERT_TRUE(set_cpu_target("scalar"));
  const Result<void> set = set_cpu_target("mmx");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::usage);
  EXPECT_NE(set.error().message.find("scalar"), std::string::npos) << set.error().message;
  EXPECT_NE(set.error().message.find("\"mmx\""), std::string::npos) << set.error().message;
  EXPECT_EQ(cpu_target(), "scalar");
}

TEST_F(CpuTest, TheEnvironmentVariableChooses) {
  setenv("TESSERA_CPU", "scalar", 1);
  ASSERT_TRUE(set_cpu_target_from_environment());
  EXPECT_EQ(cpu_target(), "scalar");

  setenv("TESSERA_CPU", "avx1024", 1);
  const Result<void> set = set_cpu_target_from_environment();
  ASSERT_FALSE(set);
  EXPECT_NE(set.error().message.find("TESSERA_CPU"), std::string::npos) << set.error().message;
  EXPECT_EQ(cpu_target(), "scalar");
}

TEST_F(CpuTest, AnUnsetEnvironmentVariableChangesNothing) {
  ASSERT_TRUE(set_cpu_target("scalar"));
  unsetenv("TESSERA_CPU");
  ASSERT_TRUE(set_cpu_target_from_environment());
  EXPECT_EQ(cpu_target(), "scalar");
}

}  // namespace
}  // namespace tessera
