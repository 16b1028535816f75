// Results as files: results.csv for tables and scripts, results.json with everything, read back for reports
// and comparisons. docs/benchmark-results.md lists columns and keys.
#pragma once

#include <string>

#include "apps/bench/result.h"
#include "core/result.h"

namespace tessera::bench {

/// One line for each row, under a line with the names of columns: set, recording, codec, point, seconds,
/// file_bytes, payload_bytes, kbps, encode_s, decode_s, delay_samples, loss_rate, every metric of
/// Results::metrics, error. What is not known is empty. RFC 4180, lines end in LF.
std::string results_csv(const Results& results);

/// Format "tessera-bench", version 1.
std::string results_json(const Results& results);
/// Errors (format): not such a file; another version; a value of another kind. Keys that nobody knows are
/// passed over. `name` is for messages.
Result<Results> parse_results(const std::string& text, const std::string& name);

/// results.csv and results.json in a folder that is there. Error: io.
Result<void> write_results(const std::string& folder, const Results& results);
/// A results.json. Errors: io, and those of parse_results().
Result<Results> read_results(const std::string& path);

}  // namespace tessera::bench
