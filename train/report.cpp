#include "train/report.h"

#include "core/atomic_file.h"
#include "train/chart.h"

namespace tessera::train {
namespace {

constexpr const char* kStyle =
    "body { font: 15px/1.4 sans-serif; max-width: 1320px; margin: 1em auto; padding: 0 1em; color: #000 }\n"
    "h1, h2 { font-weight: 600; border-bottom: 1px solid #000 }\n"
    "table { border-collapse: collapse } td, th { padding: 2px 12px 2px 0; text-align: left; vertical-align: "
    "top }\n"
    "figure { margin: 0 0 2em } img { max-width: 100%; border: 1px solid #000 }\n"
    "pre { border: 1px solid #000; padding: 8px; overflow-x: auto }\n"
    ".charts { display: flex; flex-wrap: wrap; gap: 12px }\n";

std::string element(const std::string& name, const std::string& content) {
  return "<" + name + ">" + content + "</" + name + ">\n";
}

std::string section(const std::string& title, const std::string& content) {
  return content.empty() ? "" : element("h2", escape_html(title)) + content;
}

std::string facts(const TrainingReport& report) {
  std::string rows;
  for (const auto& [name, value] : report.facts) {
    rows += element("tr", element("th", escape_html(name)) + element("td", escape_html(value)));
  }
  return rows.empty() ? "" : element("table", rows);
}

std::string charts(const std::string& content) {
  return content.empty() ? "" : "<div class=\"charts\">\n" + content + "</div>\n";
}

std::string curves(const MetricsTable& metrics) {
  std::string all;
  std::vector<double> values(metrics.steps.size());
  for (std::size_t column = 0; column < metrics.columns.size(); ++column) {
    for (std::size_t row = 0; row < values.size(); ++row) values[row] = metrics.values[row][column];
    all += line_chart(metrics.columns[column], metrics.steps, values);
  }
  return charts(all);
}

std::string codebooks(const TrainingReport& report) {
  if (report.perplexities.empty()) return "";
  return charts(
      bar_chart("perplexity of each codebook, of " + std::to_string(report.codebook_size) + " codewords",
                report.perplexities, report.codebook_size));
}

std::string sound(const std::string& name, const std::string& file) {
  if (file.empty()) return "";
  return escape_html(name) + " <audio controls preload=\"none\" src=\"" + escape_html(file) + "\"></audio>\n";
}

std::string example(const ReportExample& one) {
  const std::string image = one.spectrogram.empty() ? ""
                                                    : "<img src=\"" + escape_html(one.spectrogram) +
                                                          "\" alt=\"spectrograms: input above decoded\">\n";
  const std::string caption = escape_html(one.name + (one.caption.empty() ? "" : ": " + one.caption));
  return element("figure", element("figcaption", caption) + image +
                               element("div", sound("input", one.input) + sound("decoded", one.decoded)));
}

std::string examples(const TrainingReport& report) {
  std::string all;
  for (const ReportExample& one : report.examples) all += example(one);
  return all;
}

std::string messages(const TrainingReport& report) {
  std::string items;
  for (const std::string& message : report.messages) items += element("li", escape_html(message));
  return items.empty() ? "" : element("ul", items);
}

}  // namespace

std::string report_html(const TrainingReport& report) {
  const std::string config = report.config.empty() ? "" : element("pre", escape_html(report.config));
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
         element("title", escape_html(report.title)) + element("style", kStyle) + "</head>\n<body>\n" +
         element("h1", escape_html(report.title)) + facts(report) +
         section("Curves", curves(report.metrics)) + section("Codebooks", codebooks(report)) +
         section("Examples", examples(report)) + section("Messages", messages(report)) +
         section("Configuration", config) + "</body>\n</html>\n";
}

Result<void> write_report(const std::string& path, const TrainingReport& report) {
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  if (auto written = file->write(report_html(report)); !written) return written;
  return file->commit();
}

}  // namespace tessera::train
