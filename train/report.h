// The page about a training run: one HTML file with its curves, codebooks, examples and configuration.
// Nothing is loaded from elsewhere; pictures and sound of the examples are files beside it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "train/log.h"

namespace tessera::train {

/// A held-out recording before and after. File names are relative to the page; an empty one is left out.
struct ReportExample {
  std::string name = {};
  std::string caption = {};      ///< "step 1200, 6.4 kbps"
  std::string spectrogram = {};  ///< image: input above decoded
  std::string input = {};        ///< sound
  std::string decoded = {};      ///< sound
};

struct TrainingReport {
  std::string title = {};
  std::vector<std::pair<std::string, std::string>> facts = {};  ///< "steps": "1200 of 20000", "machine": ...
  MetricsTable metrics = {};                                    ///< a curve of each column
  std::vector<double> perplexities = {};                        ///< of each codebook
  int codebook_size = 0;
  std::vector<ReportExample> examples = {};
  std::vector<std::string> messages = {};  ///< what happened on the way
  std::string config = {};                 ///< JSON
};

std::string report_html(const TrainingReport& report);
/// Writes the page; it is replaced as a whole, so a browser may reload it at any time. Error io.
Result<void> write_report(const std::string& path, const TrainingReport& report);

}  // namespace tessera::train
