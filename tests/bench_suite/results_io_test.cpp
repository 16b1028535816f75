#include "apps/bench/results_io.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace tessera::bench {
namespace {

Results small_results() {
  Results results;
  results.metrics = {"stoi", "snr"};
  results.facts["command"] = "tessera bench audio --data \"a b\"";
  results.recipes["opus, 6 kbps"] = "opusenc --bitrate 6 {input}";
  ResultRow row;
  row.set = "test";
  row.recording = "a, \"b\".flac";
  row.codec = "opus";
  row.point = "6 kbps";
  row.seconds = 2.5;
  row.file_bytes = 2000;
  row.payload_bytes = 1900;
  row.encode_s = 0.1;
  row.decode_s = 1.0 / 3;
  row.delay_samples = -7;
  row.scores = {{"stoi", 0.1 + 0.2}, {"snr", 12}};
  results.rows.push_back(row);
  row.recording = "c.flac";
  row.payload_bytes = -1;
  row.loss_rate = 0.05;
  row.scores.erase("stoi");
  row.error = "stoi: too short";
  results.rows.push_back(row);
  CodecCost cost;
  cost.codec = "opus";
  cost.point = "6 kbps";
  cost.encode_real_time = 90.5;
  cost.decode_real_time = 400;
  cost.peak_memory_mib = 2.25;
  cost.latency_ms = -1;
  cost.start_up_ms = 0.7;
  results.costs.push_back(cost);
  Example example;
  example.set = "test";
  example.recording = "c.flac";
  example.codec = "opus";
  example.point = "6 kbps";
  example.path = "examples/c.wav";
  results.examples.push_back(example);
  return results;
}

TEST(ResultsIo, CsvHasAColumnForEachMetricAndQuotesWhatNeedsIt) {
  std::istringstream text(results_csv(small_results()));
  std::string line;
  std::getline(text, line);
  EXPECT_EQ(line,
            "set,recording,codec,point,seconds,file_bytes,payload_bytes,kbps,encode_s,decode_s,delay_samples,"
            "loss_rate,stoi,snr,error");
  std::getline(text, line);
  EXPECT_EQ(line,
            "test,\"a, \"\"b\"\".flac\",opus,6 kbps,2.5,2000,1900,6.4,0.1,0.3333333333333333,-7,0,"
            "0.30000000000000004,12,");
  std::getline(text, line);
  EXPECT_EQ(line, "test,c.flac,opus,6 kbps,2.5,2000,,6.4,0.1,0.3333333333333333,-7,0.05,,12,stoi: too short");
  EXPECT_FALSE(std::getline(text, line));
}

TEST(ResultsIo, JsonReadsBackAsItWas) {
  const Results results = small_results();
  const auto again = parse_results(results_json(results), "results.json");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->metrics, results.metrics);
  EXPECT_EQ(again->facts, results.facts);
  EXPECT_EQ(again->recipes, results.recipes);
  ASSERT_EQ(again->rows.size(), 2U);
  EXPECT_EQ(again->rows[0].scores, results.rows[0].scores);
  EXPECT_EQ(again->rows[0].decode_s, results.rows[0].decode_s);
  EXPECT_EQ(again->rows[1].payload_bytes, -1);
  EXPECT_EQ(again->costs[0].latency_ms, -1);
  // Writing what was read gives the same bytes: nothing else was lost.
  EXPECT_EQ(results_json(*again), results_json(results));
  EXPECT_EQ(results_csv(*again), results_csv(results));
  EXPECT_TRUE(parse_results(results_json({}), "empty"));
}

TEST(ResultsIo, AnythingElseIsRefused) {
  const std::string good = results_json(small_results());
  const auto message = [](const std::string& text) {
    const auto result = parse_results(text, "f.json");
    return result ? "accepted" : result.error().message;
  };
  EXPECT_EQ(message("[]"), "f.json: expected results of the benchmark suite, got no JSON object");
  EXPECT_EQ(message(good.substr(0, good.size() / 2)),
            "f.json: expected results of the benchmark suite, got no JSON object");
  EXPECT_EQ(message("{}"), "f.json: expected results of the benchmark suite, got another kind of file");
  EXPECT_EQ(message(R"({"format": 3})").find("f.json: expected results"), 0U);
  std::string other = good;
  other.replace(other.find("\"version\": 1"), 12, "\"version\": 9");
  EXPECT_EQ(message(other), "f.json: expected results of the benchmark suite, got version 9, not 1");
  other = good;
  other.replace(other.find("\"seconds\":2.5"), 13, "\"seconds\":\"x\"");
  EXPECT_EQ(message(other).find("f.json: expected results of the benchmark suite, got something else"), 0U);
  for (std::size_t i = 0; i < good.size(); i += 7) {  // none of it may crash
    other = good;
    other[i] = '}';
    message(other);
  }
}

TEST(ResultsIo, FilesAreWrittenAndRead) {
  const std::string folder = testing::TempDir() + "tessera_results_io";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(write_results(folder, small_results()));
  const auto read = read_results(folder + "/results.json");
  ASSERT_TRUE(read);
  EXPECT_EQ(results_json(*read), results_json(small_results()));
  std::ifstream csv(folder + "/results.csv");
  std::stringstream text;
  text << csv.rdbuf();
  EXPECT_EQ(text.str(), results_csv(small_results()));
  std::filesystem::remove_all(folder);
  EXPECT_EQ(read_results(folder + "/results.json").error().code, ErrorCode::io);
  EXPECT_EQ(write_results(folder, {}).error().code, ErrorCode::io);
}

}  // namespace
}  // namespace tessera::bench
