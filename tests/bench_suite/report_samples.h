// Made-up results of a benchmark for the tests of its page: several codecs whose scores rise with the rate,
// on recordings of two sets.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "apps/bench/result.h"
#include "metrics/metric.h"
#include "tests/random.h"

namespace tessera::test {

struct MadeUpCodec {
  std::string name;
  std::vector<double> kbps;
  double gain;  ///< of its scores over the others'
};

/// One row per recording, codec and point; all metrics, with about the values that they have.
inline bench::Results made_up_results(int recordings = 10) {
  const std::vector<MadeUpCodec> codecs = {{"tessera_speech", {1.5, 3, 6, 9, 12}, 0.9},
                                           {"opus", {6, 9, 12, 16, 24, 32}, 0.1},
                                           {"codec2", {0.7, 1.3, 2.4, 3.2}, 0.3},
                                           {"speex", {4, 8, 15, 24}, -0.2},
                                           {"mimi", {0.55, 1.1, 2.2, 4.4}, 1.3},
                                           {"encodec_24khz", {1.5, 3, 6, 12, 24}, 0.6},
                                           {"pcm", {256}, 1.0}};
  bench::Results results;
  for (const auto& metric : metrics::all_metrics()) results.metrics.emplace_back(metric.name);
  const auto noise = random_floats(1 << 16, 5);
  std::size_t drawn = 0;
  for (int i = 0; i < recordings; ++i) {
    for (const MadeUpCodec& codec : codecs) {
      for (const double kbps : codec.kbps) {
        bench::ResultRow row;
        row.set = i % 2 ? "test_libri" : "test_so762";
        row.recording = row.set + "/" + std::to_string(i) + ".wav";
        row.codec = codec.name;
        row.point = std::to_string(static_cast<int>(kbps * 1000)) + " bps";
        row.seconds = 4 + 0.7 * i;
        row.file_bytes = static_cast<std::int64_t>(kbps * 125 * row.seconds *
                                                   (1 + 0.05 * static_cast<double>(noise[drawn++]))) +
                         60;
        row.payload_bytes = row.file_bytes - 60;
        row.delay_samples = codec.name == "opus" ? 312 : 0;
        const double quality = 1 - 1 / (1 + kbps / (2 / std::exp2(codec.gain * 1.5)));  // 0 to 1
        for (const auto& metric : metrics::all_metrics()) {
          const double q = quality + 0.04 * static_cast<double>(noise[drawn++ % noise.size()]);
          double score = metric.unit == "MOS" ? 1 + 3.6 * q : metric.unit == "dB" ? 30 * q - 5 : q;
          if (metric.better == metrics::Better::lower) score = 1.5 - q;
          row.scores.emplace(metric.name, score);
        }
        results.rows.push_back(row);
      }
    }
  }
  for (const MadeUpCodec& codec : codecs) {
    bench::CodecCost cost;
    cost.codec = codec.name;
    cost.point = std::to_string(static_cast<int>(codec.kbps[0] * 1000)) + " bps";
    cost.encode_real_time = 123.4;
    cost.decode_real_time = 234.5;
    cost.peak_memory_mib = 45.6;
    cost.latency_ms = 26.5;
    cost.start_up_ms = 7.8;
    results.costs.push_back(cost);
    results.recipes.emplace(codec.name + ", " + cost.point, codec.name + " --rate 1 in.wav out.bin");
  }
  results.facts = {{"command line", "tessera bench --data speech --codec 'all' > log"},
                   {"date", "2030-01-02"},
                   {"machine", "a made-up machine, 2 cores"},
                   {"versions", "opus 1.3.1\nspeex 1.2.1"}};
  return results;
}

}  // namespace tessera::test
