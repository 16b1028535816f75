#include "train/report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/train/run_support.h"
#include "train/chart.h"
#include "train/progress_display.h"
#include "train/text.h"

namespace tessera::train {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Text, Numbers) {
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(rounded(0.0123456), "0.01235");
  EXPECT_EQ(fixed(2.345, 1), "2.3");
  EXPECT_EQ(clock_time(3723.4), "1:02:03");
  EXPECT_EQ(clock_time(65), "1:05");
  EXPECT_EQ(clock_time(INFINITY), "-");
}

TEST(LineChart, DrawsTheCurveAndItsMean) {
  std::vector<std::int64_t> steps;
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) {
    steps.push_back(10 * i);
    values.push_back(i % 2 ? 3.0 : 1.0);
  }
  values[50] = NAN;
  const std::string chart = line_chart("a <b>", steps, values);
  EXPECT_EQ(count(chart, "<polyline"), 2u);
  EXPECT_NE(chart.find("a &lt;b&gt;: "), std::string::npos);
  EXPECT_NE(chart.find("step 990"), std::string::npos);
  EXPECT_EQ(chart.find("nan"), std::string::npos);
  // The two ends of the vertical axis: 168 px down for 1, 24 px for 3.
  EXPECT_NE(chart.find("52.0,168.0 "), std::string::npos);
  EXPECT_NE(chart.find(",24.0 "), std::string::npos);
}

TEST(LineChart, StaysSmallAndFiniteForAnyData) {
  std::vector<std::int64_t> steps(100000);
  std::vector<double> values(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i] = static_cast<std::int64_t>(i);
    values[i] = 1.0 / static_cast<double>(i + 1);
  }
  EXPECT_LT(line_chart("long", steps, values).size(), 40000u);
  for (const double value : {0.0, 5.0, -1e300, 1e300, 1e-300}) {
    const std::string chart =
        line_chart("flat", std::vector<std::int64_t>{1, 2}, std::vector<double>{value, value});
    EXPECT_EQ(chart.find("nan"), std::string::npos) << value;
    EXPECT_EQ(chart.find("inf"), std::string::npos) << value;
  }
  EXPECT_NE(line_chart("empty", {}, {}).find("no values yet"), std::string::npos);
  EXPECT_NE(line_chart("one", std::vector<std::int64_t>{1}, std::vector<double>{NAN}).find("no values yet"),
            std::string::npos);
  EXPECT_THROW(line_chart("x", steps, {}), UsageError);
}

TrainingReport some_report() {
  TrainingReport report;
  report.title = "speech & more";
  report.facts = {{"machine", "2 cores"}};
  report.metrics.columns = {"mel", "lr"};
  report.metrics.steps = {1, 2};
  report.metrics.values = {{1, 0.1}, {0.5, 0.2}};
  report.perplexities = {100, 200, 300};
  report.codebook_size = 1024;
  report.examples.resize(1);
  report.examples[0].name = "a\"b.wav";
  report.examples[0].spectrogram = "examples/a.png";
  report.examples[0].decoded = "examples/a.wav";
  report.messages = {"checkpoint <3> is damaged"};
  report.config = "{\"a\": 1}";
  return report;
}

TEST(Report, HoldsEverythingEscaped) {
  const std::string html = report_html(some_report());
  EXPECT_NE(html.find("<h1>speech &amp; more</h1>"), std::string::npos);
  EXPECT_EQ(count(html, "<svg"), 3u);
  EXPECT_EQ(count(html, "<rect"), 3u);
  EXPECT_NE(html.find("src=\"examples/a.png\""), std::string::npos);
  EXPECT_EQ(count(html, "<audio"), 1u);
  EXPECT_NE(html.find("a&quot;b.wav"), std::string::npos);
  EXPECT_NE(html.find("checkpoint &lt;3&gt; is damaged"), std::string::npos);
  EXPECT_NE(html.find("{&quot;a&quot;: 1}"), std::string::npos);
  EXPECT_EQ(html.find("http"), std::string::npos);  // nothing from elsewhere
  for (const char* name : {"svg", "table", "figure", "div", "pre", "ul", "body", "html"}) {
    EXPECT_EQ(count(html, std::string("</") + name + ">"), count(html, std::string("<") + name)) << name;
  }
}

TEST(Report, LeavesOutWhatThereIsNot) {
  TrainingReport report;
  report.title = "empty";
  const std::string html = report_html(report);
  EXPECT_EQ(html.find("<h2>"), std::string::npos);
  const test::RunFolder folder("report");
  ASSERT_TRUE(write_report(folder / "report.html", report));
  EXPECT_EQ(test::text_of(folder / "report.html"), html);
  EXPECT_EQ(write_report(folder / "none/report.html", report).error().code, ErrorCode::io);
}

TrainingStatus some_status() {
  TrainingStatus status;
  status.step = 1200;
  status.steps = 20000;
  status.audio_s = 16;
  status.learning_rate = 3e-4;
  status.losses = {{"log_mel", 1.23456}, {"features", 0.5}};
  status.codebooks = {{803, 1}, {412.4, 2}, {700, 0}};
  status.codebook_size = 1024;
  return status;
}

TEST(ProgressDisplay, SaysWhereTheRunIs) {
  const auto block = status_block(some_status(), 2.5);
  ASSERT_EQ(block.size(), 3u);
  EXPECT_EQ(block[0], "step 1200 of 20000 (6 %), 2.5 steps/s, 40 s of audio per second, 2:05:20 left");
  EXPECT_EQ(block[1], "  log_mel 1.235  features 0.5  lr 0.0003");
  EXPECT_EQ(block[2], "  perplexity 412 to 803 of 1024, 3 of 3072 codewords unused");
  EXPECT_EQ(status_line(some_status(), 0),
            "step 1200 of 20000: log_mel 1.235  features 0.5; perplexity 412 to 803 of 1024, 3 of 3072 "
            "codewords unused");
}

TEST(ProgressDisplay, PrintsALinePerLoggedStepOrRedrawsABlock) {
  const test::RunFolder folder("progress");
  for (const bool terminal : {false, true}) {
    std::FILE* file = std::fopen((folder / "out").c_str(), "w");
    ASSERT_NE(file, nullptr);
    {
      ProgressDisplay display(file, terminal);
      TrainingStatus status = some_status();
      display.update(status, true);
      status.step = status.steps;
      display.update(status, false);
      display.print("done");
      display.clear();  // nothing is there any more
    }
    std::fclose(file);
    const std::string text = test::text_of(folder / "out");
    EXPECT_EQ(count(text, "\x1b[3A\r\x1b[J"), terminal ? 2u : 0u);
    EXPECT_EQ(count(text, "\n"), terminal ? 7u : 2u);
    EXPECT_EQ(text.substr(text.size() - 5), "done\n");
  }
}

}  // namespace
}  // namespace tessera::train
