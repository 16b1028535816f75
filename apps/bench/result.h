// What the benchmark suite measures: one row per recording and operating point.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tessera::bench {

struct ResultRow {
  std::string set = {};        ///< folder of the recording: "test_so762"
  std::string recording = {};  ///< path below the data folder
  std::string codec = {}, point = {};
  double seconds = 0;  ///< of the recording
  std::int64_t file_bytes = 0, payload_bytes = -1;
  double encode_s = 0, decode_s = 0;
  std::int64_t delay_samples = 0;             ///< of the decoded sound behind the input, found and taken out
  double loss_rate = 0;                       ///< simulated
  std::map<std::string, double> scores = {};  ///< by metric
  std::string error = {};                     ///< why there are no scores, or not all

  /// File bytes x 8 / seconds / 1000.
  double kbps() const { return seconds > 0 ? static_cast<double>(file_bytes) * 8 / seconds / 1000 : 0; }
};

/// What a codec costs, measured apart from the rows on one thread.
struct CodecCost {
  std::string codec = {}, point = {};
  double encode_real_time = 0, decode_real_time = 0;  ///< seconds of sound per second
  double peak_memory_mib = 0;
  double latency_ms = 0;  ///< algorithmic, found by an impulse
  double start_up_ms = 0;
};

/// One codec and point in the whole of the results.
struct SeriesKey {
  std::string codec = {}, point = {};
  auto operator<=>(const SeriesKey&) const = default;
};

/// A sound kept to listen to.
struct Example {
  std::string set = {}, recording = {};
  std::string codec = {}, point = {};  ///< both empty: the recording itself
  std::string path = {};               ///< of a WAV file, below the folder of the results
};

struct Results {
  std::vector<ResultRow> rows = {};
  std::vector<CodecCost> costs = {};
  std::vector<Example> examples = {};
  std::vector<std::string> metrics = {};            ///< names, as metrics/metric.h knows them, in order
  std::map<std::string, std::string> facts = {};    ///< machine, versions, hashes, date, command line
  std::map<std::string, std::string> recipes = {};  ///< "codec, point" -> how to do the same
};

}  // namespace tessera::bench
