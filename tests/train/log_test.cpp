#include "train/log.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/train/run_support.h"

namespace tessera::train {
namespace {

using test::RunFolder;
using test::text_of;
using test::write_text;

const std::vector<std::string> kColumns = {"mel", "lr"};

Metrics row(std::int64_t step) {
  return {{"lr", 0.1 / static_cast<double>(step)}, {"mel", 1.0 / 3.0}};
}

TEST(MetricsLog, AResumedLogEqualsOneNeverStopped) {
  const RunFolder folder("log");
  const std::string whole = folder / "whole.csv", resumed = folder / "resumed.csv";
  {
    MetricsLog log = MetricsLog::open(whole, kColumns, 0).value();
    for (int step = 10; step <= 60; step += 10) ASSERT_TRUE(log.append(step, row(step)));
  }
  {
    MetricsLog log = MetricsLog::open(resumed, kColumns, 0).value();
    for (int step = 10; step <= 50; step += 10) ASSERT_TRUE(log.append(step, row(step)));
  }
  write_text(resumed, text_of(resumed) + "60,0.3333");  // killed while it wrote
  {
    MetricsLog log = MetricsLog::open(resumed, kColumns, 30).value();  // its checkpoint was of step 30
    EXPECT_THROW((void)log.append(30, row(30)), UsageError);
    for (int step = 40; step <= 60; step += 10) ASSERT_TRUE(log.append(step, row(step)));
  }
  EXPECT_EQ(text_of(resumed), text_of(whole));
  EXPECT_EQ(text_of(whole).substr(0, 41), "step,mel,lr\n10,0.3333333333333333,0.01\n20");
}

TEST(MetricsLog, LeavesCellsWithoutValueEmpty) {
  const RunFolder folder("log-empty");
  const std::string path = folder / "m.csv";
  {
    MetricsLog log = MetricsLog::open(path, kColumns, 0).value();
    ASSERT_TRUE(log.append(1, {{"lr", 2}}));
    ASSERT_TRUE(log.append(5, {}));
    EXPECT_THROW((void)log.append(6, {{"melt", 2}}), UsageError);
  }
  EXPECT_EQ(text_of(path), "step,mel,lr\n1,,2\n5,,\n");
  const MetricsTable table = read_metrics(path).value();
  EXPECT_EQ(table.columns, kColumns);
  EXPECT_EQ(table.steps, (std::vector<std::int64_t>{1, 5}));
  EXPECT_TRUE(std::isnan(table.values[0][0]));
  EXPECT_EQ(table.values[0][1], 2);
}

TEST(MetricsLog, StartsAnewAtStepZero) {
  const RunFolder folder("log-new");
  const std::string path = folder / "m.csv";
  { ASSERT_TRUE(MetricsLog::open(path, kColumns, 0).value().append(1, row(1))); }
  { ASSERT_TRUE(MetricsLog::open(path, kColumns, 0)); }
  EXPECT_EQ(text_of(path), "step,mel,lr\n");
}

TEST(MetricsLog, RefusesWhatIsNoLogOfThisRun) {
  const RunFolder folder("log-bad");
  const std::string path = folder / "m.csv";
  const auto error_of = [&](const std::string& text) {
    write_text(path, text);
    const auto table = read_metrics(path);
    return table ? "none" : table.error().message.substr(path.size());
  };
  EXPECT_EQ(error_of(""), ": line 1: expected a header \"step,...\", got \"\"");
  EXPECT_EQ(error_of("a,b\n"), ": line 1: expected a header \"step,...\", got \"a\"");
  EXPECT_EQ(error_of("step,b\n1\n"), ": line 2: expected 2 cells, got 1");
  EXPECT_EQ(error_of("step,b\n1,1\n1,1\n"), ": line 3: expected a step after the one before, got \"1\"");
  EXPECT_EQ(error_of("step,b\n1,x\n"), ": line 2: expected a number or nothing, got \"x\"");
  EXPECT_EQ(error_of("step,b\n1,inf\n2,1e-05\n"), "none");
  EXPECT_EQ(MetricsLog::open(path, kColumns, 0).error().code, ErrorCode::mismatch);
  EXPECT_EQ(read_metrics(folder / "none").error().code, ErrorCode::io);
  EXPECT_FALSE(MetricsLog::open(folder / "none/m.csv", kColumns, 0));
  EXPECT_THROW((void)MetricsLog::open(path, {"a", "a"}, 0), UsageError);
  EXPECT_THROW((void)MetricsLog::open(path, {"a,b"}, 0), UsageError);
}

}  // namespace
}  // namespace tessera::train
