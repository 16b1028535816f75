#include "apps/bench/report.h"

#include <algorithm>

#include "apps/bench/html.h"
#include "apps/bench/rate_chart.h"
#include "apps/bench/report_parts.h"
#include "core/atomic_file.h"

namespace tessera::bench {
namespace {

constexpr const char* kStyle =
    "body { font: 15px/1.4 sans-serif; max-width: 1320px; margin: 1em auto; padding: 0 1em; color: #000; "
    "background: #fff }\n"
    "h1, h2 { font-weight: 600; border-bottom: 1px solid #000 } h2 { margin-top: 2em }\n"
    "h3 { font-weight: 600; margin: 1em 0 .3em } small { font-size: 85% }\n"
    "p { max-width: 60em }\n"
    "nav a { margin-right: 1em; color: #000 }\n"
    "table { border-collapse: collapse }\n"
    "td, th { padding: 2px 12px 2px 0; text-align: left; vertical-align: top }\n"
    "thead th { vertical-align: bottom; border-bottom: 1px solid #000 } th small { font-weight: 400 }\n"
    "tbody th { font-weight: 400; white-space: nowrap } tr.first > * { border-top: 1px solid #bbb }\n"
    ".n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }\n"
    ".facts th { font-weight: 600 } .pre { white-space: pre-wrap; overflow-wrap: anywhere }\n"
    ".wide { overflow-x: auto } .wide table { font-size: 13px } .wide td { white-space: nowrap }\n"
    ".wide tbody th { position: sticky; left: 0; background: #fff }\n"
    ".charts { display: flex; flex-wrap: wrap; gap: 16px } svg { max-width: 100%; height: auto }\n"
    "figure { margin: 0 0 1em; width: 420px; display: flex; flex-direction: column } figcaption { flex: 1 }\n"
    "figure img { width: 418px; height: 180px; border: 1px solid #000 } audio { width: 420px }\n"
    "details { margin: .5em 0 } summary { font-weight: 600; cursor: pointer }\n"
    "@media print { .wide { overflow: visible } nav, audio { display: none } }\n";

constexpr double kChartWidth = 636, kChartHeight = 370;

/// A chart of each metric that any curve has points of.
template <class Curves>
std::string charts(const ReportData& data, const std::string& x_title, bool logarithmic,
                   const Curves& curves_of) {
  std::string all;
  for (const std::string& metric : data.results.metrics) {
    const std::vector<ChartCurve> curves = curves_of(metric);
    if (std::ranges::all_of(curves, [](const ChartCurve& curve) { return curve.points.empty(); })) continue;
    ChartOptions options = metric_chart(metric);
    options.x_title = x_title;
    options.logarithmic_x = logarithmic;
    options.legend = false;
    options.width = kChartWidth;
    options.height = kChartHeight;
    all += xy_chart(curves, options);
  }
  return all.empty() ? "" : element("div", all, "class=\"charts\"");
}

struct Section {
  const char* id = "";
  const char* title = "";
  std::string content = {};
};

}  // namespace

std::string charts_section(const ReportData& data) {
  const std::string& highlight = data.options.highlight;
  const std::string all = of_scopes(data, [&](const Scope& scope) {
    return charts(data, "kbps", data.options.logarithmic_rate,
                  [&](const std::string& metric) { return rate_curves(scope.codecs, metric, highlight); });
  });
  if (all.empty()) return "";
  return element("p",
                 "Each point is an operating point: the mean over recordings, with its interval (of the rate "
                 "only "
                 "where it is wider than the marker). Rates are file bytes x 8 / seconds. Points show their "
                 "numbers "
                 "under the pointer.") +
         chart_legend(rate_curves(data.scopes.front().codecs, "", highlight), 2 * kChartWidth) + all;
}

std::string loss_section(const ReportData& data) {
  const std::string& highlight = data.options.highlight;
  const std::string all = charts(data, "packets lost, %", false, [&](const std::string& metric) {
    return loss_curves(data.loss, metric, highlight);
  });
  if (all.empty()) return "";
  return element("p",
                 "Packets were dropped at random, for all codecs by the same draw, and concealed by the "
                 "decoder.") +
         chart_legend(loss_curves(data.loss, "", highlight), 2 * kChartWidth) + all;
}

std::string report_html(const Results& results, const ReportOptions& options) {
  ReportData data{results, options};
  data.scopes = summarize(results, options.bootstrap);
  data.loss = summarize_loss(results, options.bootstrap);
  std::vector<LeftOut> left_out = options.left_out;
  const auto& codecs = data.scopes.front().codecs;
  if (!options.anchor.empty() &&
      std::ranges::find(codecs, options.anchor, &CodecSummary::codec) == codecs.end()) {
    LeftOut& anchor = left_out.emplace_back();
    anchor.what = "anchor " + options.anchor;
    anchor.reason = "no results of it; the first codec took its place";
  }
  std::vector<Section> sections;
  const auto add = [&](const char* id, const char* title, std::string content) {
    if (!content.empty()) sections.push_back({id, title, std::move(content)});
  };
  add("measured", "What was measured", facts_section(data));
  add("charts", "Quality over rate", charts_section(data));
  add("results", "Every codec and point", results_section(data));
  add("costs", "Cost", costs_section(data));
  add("bd-rate", "Bytes for the same score", bd_rate_section(data));
  add("paired", "Scores at about the same rate", paired_section(data));
  add("loss", "Lost packets", loss_section(data));
  add("examples", "Examples", examples_section(data, left_out));
  add("metrics", "What each metric tells", metrics_section(data));
  add("errors", "Errors and what was left out", errors_section(data, left_out));
  add("recipes", "How to do the same", recipes_section(data));
  std::string links, body;
  for (const Section& section : sections) {
    links += element("a", section.title, std::string("href=\"#") + section.id + "\"");
    body += element("h2", section.title, std::string("id=\"") + section.id + "\"") + section.content;
  }
  const std::string title = html_text(options.title);
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
         element("title", title) + element("style", kStyle) + "</head>\n<body>\n" + element("h1", title) +
         element("nav", links) + body + "</body>\n</html>\n";
}

Result<void> write_report(const std::string& path, const Results& results, const ReportOptions& options) {
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  if (auto written = file->write(report_html(results, options)); !written) return written;
  return file->commit();
}

}  // namespace tessera::bench
