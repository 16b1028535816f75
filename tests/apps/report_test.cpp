// Times, the progress line and the table of exit codes.
#include "apps/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/exit_code.h"
#include "apps/progress.h"

namespace tessera::app {
namespace {

TEST(Report, ClockTimes) {
  EXPECT_EQ(clock_time(0), "0:00.0");
  EXPECT_EQ(clock_time(61.25), "1:01.3");
  EXPECT_EQ(clock_time(59.96), "1:00.0");
  EXPECT_EQ(clock_time(3723.5), "1:02:03.5");
}

TEST(Report, ProgressLine) {
  EXPECT_EQ(progress_line("encoding", 30, 120, 2), "encoding  25 %, 15.0 s of audio per second, 0:06.0 left");
  EXPECT_EQ(progress_line("decoding", 30, std::nullopt, 2), "decoding  0:30.0, 15.0 s of audio per second");
  EXPECT_EQ(progress_line("encoding", 130, 120, 2),
            "encoding  100 %, 65.0 s of audio per second, 0:00.0 left");
}

TEST(Report, ExitCodesAreThoseOfTheDocumentation) {
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorCode::usage)), 2);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorCode::io)), 3);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorCode::format)), 4);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorCode::unsupported)), 5);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorCode::mismatch)), 6);
  EXPECT_EQ(static_cast<int>(exit_code_of(ErrorCode::damaged)), 7);
}

}  // namespace
}  // namespace tessera::app
