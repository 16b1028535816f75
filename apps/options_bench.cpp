#include <cstdlib>

#include "apps/option_helpers.h"

namespace tessera::app {
namespace {

void add_audio(CLI::App& bench, BenchOptions& options) {
  CLI::App* audio = bench.add_subcommand("audio", "Measure audio codecs on folders of recordings");
  audio
      ->add_option("--data", options.data,
                   "Folder of recordings; folders in it are sets, else it is one itself. May be repeated")
      ->type_name("DIR")
      ->required();
  audio->add_option("-o,--out", options.folder, "Folder of the results: made, or gone on with")
      ->type_name("DIR")
      ->required();
  audio
      ->add_option("--codecs", options.codecs,
                   "What to measure (default: tessera opus codec2 speex, as far as they are built in); "
                   "\"opus:6,12\", \"tessera:FILE:4,8\", docs/benchmark-codecs.md lists them")
      ->type_name("SPEC");
  audio
      ->add_option("--points", options.points,
                   "Only operating points that a pattern fits: \"opus/*\", \"8 codebooks\" (default: all)")
      ->type_name("PATTERN");
  audio
      ->add_option("--metrics", options.metrics,
                   "Separated by commas, or all (default: those for speech, as far as their files are there)")
      ->type_name("NAME")
      ->delimiter(',');
  audio->add_option("--models", options.models, "Folder with model files of metrics: visqol/, dnsmos/")
      ->type_name("DIR");
  audio
      ->add_option("--align", options.alignments,
                   "Phone alignments of recordings, for the metric phone_error (docs/metrics.md)")
      ->type_name("FILE");
  auto* loss = audio
                   ->add_option("--loss", options.losses,
                                "Measure codecs that conceal losses also with this part of packets lost")
                   ->type_name("RATE")
                   ->check([](const std::string& text) {
                     const double rate = std::atof(text.c_str());
                     return rate > 0 && rate < 1 ? "" : "expected a rate above 0 and below 1, got " + text;
                   });
  audio->add_option("--burst", options.burst, "Packets lost in a row, on average (default: 1)")
      ->type_name("N")
      ->needs(loss)
      ->check([](const std::string& text) {
        const double burst = std::atof(text.c_str());
        return burst >= 1 && burst <= 1000 ? "" : "expected 1 to 1000 packets, got " + text;
      });
  add_count(*audio, "--seed", options.seed, 0, "Of losses (default: 1)")->needs(loss);
  audio->add_option("--anchor", options.anchor, "Codec to compare all others with (default: the first)")
      ->type_name("CODEC");
  add_count(*audio, "--threads", options.threads, 0,
            "Recordings at a time; 0, the default: as many as cores. Any number gives the same scores");
  add_count(*audio, "--limit", options.limit, 1, "Only N recordings of each set, evenly from all of it");
  add_count(*audio, "--examples", options.examples, 0, "Recordings to listen to in the report (default: 3)");
  audio->add_flag("--cost,!--no-cost", options.cost,
                  "Measure speed, memory, latency and start-up, too (default: yes)");
  add_report(*audio, options.report, false);
  audio->footer(
      "The folder gets results.csv, results.json, report.html, charts/, examples/ and cache/. What was "
      "measured "
      "before "
      "comes from the\n"
      "cache, so the same command goes on after a stop. Exit code 7: a codec or a metric failed on a "
      "recording.\n"
      "Examples:\n"
      "  tessera bench audio --data speech/test --out bench --models metrics\n"
      "  tessera bench audio --data speech/test --out bench --codecs tessera:8 opus:6,12 --limit 10 "
      "--no-cost\n"
      "  tessera bench audio --data speech/test --out bench --codecs opus --loss 0.05 --loss 0.2 --burst 2");
}

}  // namespace

CLI::App* add_bench(CLI::App& app, BenchOptions& options) {
  CLI::App* bench =
      app.add_subcommand("bench", "Measure codecs: rate, quality, cost; with a report and statistics");
  bench->require_subcommand(1);
  add_audio(*bench, options);
  return bench;
}

}  // namespace tessera::app
