// The command: what its words mean, and a whole run with the codec that changes nothing.
#include "apps/bench/plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "apps/bench/results_io.h"
#include "apps/commands.h"
#include "tests/bench_suite/stand_ins.h"

namespace tessera::bench {
namespace {

std::vector<PlannedCodec> two_codecs() {
  std::vector<PlannedCodec> codecs(2);
  codecs[0].runner =
      std::make_unique<StandIn>("good", unchanged, std::vector<std::string>{"6 kbps", "12 kbps"});
  auto other = std::make_unique<StandIn>("other", unchanged, std::vector<std::string>{"6 kbps"});
  other->can_conceal = true;
  codecs[1].runner = std::move(other);
  return codecs;
}

TEST(BenchPlan, PatternsChoosePoints) {
  const auto codecs = two_codecs();
  std::vector<LeftOut> left_out;
  EXPECT_EQ(plan_series(codecs, {}, {}, left_out)->size(), 3U);
  EXPECT_EQ(plan_series(codecs, {"6 kbps"}, {}, left_out)->size(), 2U);
  EXPECT_EQ(plan_series(codecs, {"good/*"}, {}, left_out)->size(), 2U);
  EXPECT_EQ(plan_series(codecs, {"other/*", "good/12*"}, {}, left_out)->size(), 2U);
  EXPECT_TRUE(left_out.empty());
  const auto none = plan_series(codecs, {"6 kbps", "7*"}, {}, left_out);
  EXPECT_EQ(none.error().message,
            "expected patterns of operating points among good/6 kbps, good/12 kbps, other/6 kbps, got 7*");
}

TEST(BenchPlan, LossIsForCodecsThatConceal) {
  const auto codecs = two_codecs();
  std::vector<LeftOut> left_out;
  std::vector<LossOptions> losses(2);
  losses[0].rate = 0.1;
  losses[1].rate = 0.2;
  const auto series = plan_series(codecs, {}, losses, left_out);
  ASSERT_EQ(series->size(), 5U);
  EXPECT_EQ((*series)[4].loss.rate, 0.2);
  EXPECT_EQ((*series)[4].runner->name(), "other");
  ASSERT_EQ(left_out.size(), 1U);
  EXPECT_EQ(left_out[0].what, "good with losses");
}

TEST(BenchPlan, MetricsThatCannotBeHadAreNamed) {
  std::vector<LeftOut> left_out;
  const auto usual = plan_metrics({}, "", {}, left_out);
  EXPECT_EQ(usual->available().size(), 6U);
  EXPECT_EQ(left_out.size(), 5U);  // visqol_speech, dnsmos_*, phone_error
  EXPECT_EQ(plan_metrics({"all"}, "", {}, left_out)->available().size(), 7U);
  EXPECT_EQ(plan_metrics({"stoi", "dnsmos_ovr"}, "", {}, left_out).error().code, ErrorCode::usage);
  EXPECT_EQ(plan_metrics({"loudness"}, "", {}, left_out).error().code, ErrorCode::usage);
}

TEST(BenchPlan, PhoneErrorNeedsAlignmentsOfTheRecordings) {
  std::vector<LeftOut> left_out;
  EXPECT_EQ(plan_metrics({"phone_error"}, "", {}, left_out).error().message,
            "metric phone_error: needs phone alignments");
  EXPECT_EQ(plan_metrics({}, "", {"/nowhere/a.tsv"}, left_out).error().code, ErrorCode::io);
  const std::string path = testing::TempDir() + "plan_test.tsv";
  std::ofstream(path) << "a\t0:AH 9:</s>\n";
  const auto suite = plan_metrics({"phone_error", "snr"}, "", {path}, left_out);
  ASSERT_TRUE(suite) << suite.error().message;
  EXPECT_EQ(suite->available().size(), 2U);
  EXPECT_TRUE(left_out.empty());
  Recording a, b;
  a.name = "set/a.wav";
  b.name = "set/b.wav";
  EXPECT_TRUE(uncovered(*suite, {a})->empty());
  EXPECT_EQ(*uncovered(*suite, {b, a}),
            std::vector<std::string>{"phone_error: 1 of 2 recordings have an alignment"});
  EXPECT_EQ(uncovered(*suite, {b}).error().code, ErrorCode::usage);
  EXPECT_EQ(uncovered(*plan_metrics({"snr"}, "", {path}, left_out), {b})->size(), 0U);
  std::ofstream(path) << "a\t0:AH 5:AH2 9:</s>\n";
  EXPECT_EQ(plan_metrics({}, "", {path}, left_out).error().code, ErrorCode::mismatch);
  std::filesystem::remove(path);
}

TEST(BenchPlan, CodecsHaveDifferentNames) {
  std::vector<LeftOut> left_out;
  EXPECT_EQ(plan_codecs({"identity", "identity"}, left_out).error().code, ErrorCode::usage);
  EXPECT_EQ(plan_codecs({"identity", "second=identity"}, left_out)->size(), 2U);
  EXPECT_EQ(plan_codecs({"nothing"}, left_out).error().code, ErrorCode::usage);
}

Result<app::Command> parse(std::vector<const char*> words) {
  words.insert(words.begin(), {"tessera", "bench"});
  return app::parse_command_line(static_cast<int>(words.size()), words.data()).command;
}

TEST(BenchCommand, Options) {
  const auto command =
      parse({"audio",    "--data",    "a",       "--data",    "b",        "--out",   "o",
             "--codecs", "opus:6,12", "tessera", "--metrics", "stoi,snr", "--align", "x.tsv",
             "--align",  "y.tsv",     "--loss",  "0.1",       "--burst",  "2",       "--no-cost"});
  ASSERT_TRUE(command) << command.error().message;
  const auto& options = std::get<app::BenchOptions>(*command);
  EXPECT_EQ(options.data, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.codecs, (std::vector<std::string>{"opus:6,12", "tessera"}));
  EXPECT_EQ(options.metrics, (std::vector<std::string>{"stoi", "snr"}));
  EXPECT_EQ(options.alignments, (std::vector<std::string>{"x.tsv", "y.tsv"}));
  EXPECT_EQ(options.losses, std::vector<double>{0.1});
  EXPECT_EQ(options.burst, 2);
  EXPECT_FALSE(options.cost);
  const auto help = parse({"audio", "--help"});
  EXPECT_NE(std::get<app::TextAnswer>(*help).text.find("--codecs"), std::string::npos);
  EXPECT_EQ(parse({"audio", "--out", "o"}).error().code, ErrorCode::usage);
  EXPECT_EQ(parse({"audio", "--data", "a", "--out", "o", "--loss", "1"}).error().code, ErrorCode::usage);
  EXPECT_EQ(parse({"audio", "--data", "a", "--out", "o", "--burst", "2"}).error().code, ErrorCode::usage);
  EXPECT_EQ(parse({}).error().code, ErrorCode::usage);
}

TEST(BenchCommand, FromFoldersToAReport) {
  const BenchFolder folder;
  folder.record("s/a.wav", 1.5);
  folder.record("s/b.wav", 1.3, 2);
  app::BenchOptions options;
  options.data = {folder / "data"};
  options.folder = folder / "out";
  options.codecs = {"identity"};
  options.metrics = {"snr", "stoi"};
  options.examples = 1;
  options.report.quiet = true;
  app::Interrupt interrupt;
  app::Report report("bench", options.report);
  app::Session session{report, interrupt};
  const auto code = app::run(options, session);
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_EQ(*code, app::ExitCode::ok);
  const auto results = read_results(folder / "out/results.json");
  ASSERT_TRUE(results) << results.error().message;
  ASSERT_EQ(results->rows.size(), 2U);
  EXPECT_EQ(results->rows[0].scores.at("snr"), 100);
  ASSERT_EQ(results->costs.size(), 1U);
  EXPECT_NEAR(results->costs[0].latency_ms, 1.0 / 16, 1e-9);
  EXPECT_EQ(results->examples.size(), 2U);
  EXPECT_EQ(results->recipes.size(), 1U);
  EXPECT_TRUE(std::filesystem::exists(folder / "out/results.csv"));
  EXPECT_TRUE(std::filesystem::exists(folder / "out/report.html"));

  folder.record("s/c.wav", 0.2);  // too short for STOI
  EXPECT_EQ(app::run(options, session).value(), app::ExitCode::damaged);
  EXPECT_EQ(read_results(folder / "out/results.json")->rows.size(), 3U);
}

}  // namespace
}  // namespace tessera::bench
