#include "apps/bench/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "apps/bench/html.h"
#include "apps/bench/rate_chart.h"
#include "codec/media.h"
#include "tests/bench_suite/markup.h"
#include "tests/bench_suite/png_reader.h"
#include "tests/bench_suite/report_samples.h"
#include "tests/train/run_support.h"

namespace tessera::bench {
namespace {

using test::count_of;

ReportOptions quick() {
  ReportOptions options;
  options.bootstrap.resamples = 50;
  return options;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Whole in itself: nothing is loaded, nothing runs, every element is closed.
void expect_alone(const std::string& html) {
  EXPECT_EQ(test::markup_trouble(html), "");
  EXPECT_FALSE(holds(html, "<script"));
  EXPECT_FALSE(holds(html, "@import"));
  EXPECT_FALSE(holds(html, "url("));
  for (const std::string& value : test::attribute_values(html, "src")) {
    EXPECT_EQ(value.substr(0, 5), "data:") << value.substr(0, 60);
  }
  for (const std::string& value : test::attribute_values(html, "href")) {
    EXPECT_TRUE(holds(html, "id=\"" + value.substr(1) + "\"")) << value;
  }
}

TEST(BenchReport, HoldsChartsTablesAndFacts) {
  ReportOptions options = quick();
  options.anchor = "opus";
  const Results results = test::made_up_results();
  const std::string html = report_html(results, options);
  expect_alone(html);
  // A chart of every metric for all recordings and either set, and one legend.
  EXPECT_EQ(count_of(html, "<svg"), 3 * results.metrics.size() + 1);
  EXPECT_TRUE(holds(html, "tessera bench --data speech --codec 'all' &gt; log"));
  EXPECT_TRUE(holds(html, "tessera_speech (5 points)"));
  EXPECT_TRUE(holds(html, "10 recordings, 1:11, of 2 sets: test_libri, test_so762"));
  EXPECT_TRUE(holds(html, "<td class=\"n\">123.4</td>"));
  EXPECT_TRUE(holds(html, "speex --rate 1 in.wav out.bin"));
  EXPECT_TRUE(holds(html, "None: every codec took part"));
  EXPECT_TRUE(holds(html, "blind to timbre and level"));
  EXPECT_TRUE(holds(html, "<h3>Against opus</h3>"));
  EXPECT_TRUE(holds(html, "title=\"the tested codec has 1 points"));  // pcm
  EXPECT_FALSE(holds(html, "nan"));
  EXPECT_FALSE(holds(html, ">inf"));
  EXPECT_EQ(html, report_html(results, options));
}

/// Two recordings, one codec at three points against one at half of its rates.
Results halves() {
  Results results;
  results.metrics = {"stoi", "strange"};
  for (const auto& [codec, bytes] : {std::pair("whole", 2000), std::pair("half", 1000)}) {
    for (int point = 1; point <= 3; ++point) {
      for (int recording = 1; recording <= 2; ++recording) {
        ResultRow row;
        row.set = "s";
        row.recording = std::to_string(recording) + ".wav";
        row.codec = codec;
        row.point = std::to_string(point);
        row.seconds = 2;
        row.file_bytes = bytes << point;
        row.scores["stoi"] = 0.2 * point + 0.1 * recording;
        results.rows.push_back(row);
      }
    }
  }
  return results;
}

TEST(BenchReport, ShowsTheNumbers) {
  const std::string html = report_html(halves(), quick());
  expect_alone(html);
  EXPECT_TRUE(holds(html, ">16.00 ± 0.00</td>"));  // 4000 bytes in 2 s
  EXPECT_TRUE(holds(html, "0.350 ± "));            // the mean of 0.3 and 0.4
  EXPECT_TRUE(holds(html, ">-50.0 % (-50.0 to -50.0)</td>"));
  EXPECT_TRUE(holds(html, ">+100.0 % (+100.0 to +100.0)</td>"));  // the other way round
  EXPECT_TRUE(holds(html, ">+0.200 ± 0.000 ▲</td>"));             // half's second point against whole's first
  EXPECT_TRUE(holds(html, "higher in 2, lower in 0, equal in 0; sign test p = 0.5"));
  EXPECT_TRUE(holds(html, "A metric that this program does not know."));
  EXPECT_EQ(count_of(html, "<svg"), 2u);  // no chart of the strange metric
}

TEST(BenchReport, EscapesWhatItIsGiven) {
  const std::string evil = "<script>alert(\"x\")</script>&";
  Results results = halves();
  for (ResultRow& row : results.rows) {
    row.set = row.recording = row.point = evil + row.point;
    row.codec += evil;
  }
  results.rows[0].error = evil;
  results.metrics.push_back(evil);
  results.rows[1].scores[evil] = 1;
  results.facts[evil] = evil;
  results.recipes[evil] = evil;
  CodecCost cost;
  cost.codec = cost.point = evil;
  results.costs.push_back(cost);
  Example example;
  example.set = example.recording = example.codec = example.point = example.path = evil;
  results.examples.push_back(example);
  ReportOptions options = quick();
  options.title = options.anchor = options.highlight = evil;
  options.left_out = {{evil, evil}};
  expect_alone(report_html(results, options));
}

TEST(BenchReport, TellsWhatIsMissing) {
  Results results = halves();
  results.rows[0].scores["stoi"] = NAN;
  results.rows[2].error = "whole: exit code 3";
  results.rows[2].file_bytes = 0;
  results.rows[3].error = "whole: exit code 3";
  results.rows[3].file_bytes = 0;
  ReportOptions options = quick();
  options.left_out = {{"lyra", "no such program"}};
  options.anchor = "nobody";
  const std::string html = report_html(results, options);
  expect_alone(html);
  EXPECT_TRUE(holds(html, "(1 missing)"));
  EXPECT_TRUE(holds(html, "<td class=\"n\">0 (2)</td>"));  // no recording of whole, 2
  EXPECT_TRUE(holds(html, "no such program"));
  EXPECT_TRUE(holds(html, "anchor nobody"));
  EXPECT_TRUE(holds(html, "<td>whole: exit code 3</td>\n<td class=\"n\" title=\"s/1.wav, s/2.wav\">2</td>"));
  EXPECT_FALSE(holds(html, "nan"));
}

TEST(BenchReport, NothingWasMeasured) {
  const std::string html = report_html({}, quick());
  expect_alone(html);
  EXPECT_TRUE(holds(html, "0 recordings"));
  EXPECT_EQ(count_of(html, "<svg"), 0u);
}

TEST(BenchReport, PlotsLoss) {
  Results results = halves();
  const std::size_t before = count_of(report_html(results, quick()), "<svg");
  for (std::size_t i = 0; i < 2; ++i) {
    results.rows.push_back(results.rows[i]);
    results.rows.back().loss_rate = 0.25;
    results.rows.back().scores["stoi"] = 0.1;
  }
  const std::string html = report_html(results, quick());
  EXPECT_EQ(count_of(html, "<svg"), before + 2);
  EXPECT_TRUE(holds(html, "whole, 1: 0.1 (0.1 to 0.1) at 25</title>"));
}

void write_wav(const std::string& path, int rate_hz) {
  WriteOptions options;
  options.sample_rate_hz = rate_hz;
  options.channels = 1;
  auto writer = AudioWriter::create(path, options).value();
  writer.write(test::test_sound(static_cast<std::size_t>(rate_hz) / 2)).value();
  writer.finish().value();
}

TEST(BenchReport, EmbedsExamples) {
  const test::RunFolder folder("bench-report");
  write_wav(folder / "original.wav", 16000);
  write_wav(folder / "decoded.wav", 16000);
  test::write_text(folder / "text.wav", "no sound");
  Results results = halves();
  const auto add = [&](const char* codec, const char* path) {
    Example example;
    example.set = "s";
    example.recording = "1.wav";
    example.codec = codec;
    example.point = *codec ? "1" : "";
    example.path = path;
    results.examples.push_back(example);
  };
  add("whole", "decoded.wav");
  add("", "original.wav");
  add("half", "gone.wav");
  add("half", "text.wav");
  ReportOptions options = quick();
  options.folder = folder.path();
  const std::string html = report_html(results, options);
  expect_alone(html);
  EXPECT_EQ(count_of(html, "<audio"), 2u);
  EXPECT_EQ(count_of(html, "src=\"data:image/png;base64,"), 2u);
  const std::string wav = test::text_of(folder / "original.wav");
  EXPECT_EQ(count_of(html, data_uri("audio/wav", std::as_bytes(std::span(wav)))), 2u);  // both are the same
  EXPECT_LT(html.find("<b>original</b>"), html.find("<b>whole, 1</b>"));
  EXPECT_TRUE(holds(html, "0 to 8 kHz"));
  EXPECT_TRUE(holds(html, "16.00 kbps; stoi 0.3"));
  EXPECT_TRUE(holds(html, "gone.wav: No such file"));
  EXPECT_TRUE(holds(html, "text.wav: expected a WAV, FLAC or Ogg file"));
  options.most_example_bytes = 1000;
  const std::string without = report_html(results, options);
  EXPECT_EQ(count_of(without, "<audio"), 0u);
  EXPECT_TRUE(holds(without, "expected at most 1000 bytes to embed"));
}

TEST(BenchReport, WritesFiles) {
  const test::RunFolder folder("bench-report");
  const Results results = halves();
  ASSERT_TRUE(write_report(folder / "report.html", results, quick()));
  EXPECT_EQ(test::text_of(folder / "report.html"), report_html(results, quick()));
  EXPECT_EQ(write_report(folder / "none/report.html", results, quick()).error().code, ErrorCode::io);
  EXPECT_EQ(write_rate_distortion_svg(folder / "none/x.svg", results, "stoi").error().code, ErrorCode::io);
}

TEST(RateDistortionSvg, StandsAlone) {
  RateChartOptions options;
  options.highlight = "half";
  const std::string svg = rate_distortion_svg(halves(), "stoi", options);
  EXPECT_EQ(svg.substr(0, 5), "<svg ");
  EXPECT_TRUE(holds(svg, "xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_EQ(count_of(svg, "<polyline"), 2u);
  EXPECT_EQ(count_of(svg, "font-weight=\"bold\">half</text>"), 1u);
  EXPECT_TRUE(holds(svg, "higher is better"));
  EXPECT_EQ(test::markup_trouble(svg), "");
  options.set = "no such set";
  EXPECT_TRUE(holds(rate_distortion_svg(halves(), "stoi", options), "no data"));
  EXPECT_TRUE(holds(rate_distortion_svg(halves(), "no such metric"), "no data"));
}

/// A program that draws pages, or nothing.
std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (std::system(("command -v " + std::string(name) + " >/dev/null 2>&1").c_str()) == 0) return name;
  }
  return "";
}

TEST(BenchReport, ABrowserDrawsIt) {
  const std::string program = browser();
  if (program.empty()) GTEST_SKIP() << "no Chromium here to draw the page";
  const test::RunFolder folder("bench-report");
  Results results = test::made_up_results(4);
  ASSERT_TRUE(write_report(folder / "report.html", results, quick()));
  ASSERT_TRUE(write_rate_distortion_svg(folder / "chart.svg", results, "visqol_speech"));
  for (const char* name : {"report.html", "chart.svg"}) {
    const std::string picture = folder / (std::string(name) + ".png");
    const std::string command = "timeout 100 " + program +
                                " --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir='" +
                                (folder / "profile") + "' --window-size=1000,800 --screenshot='" + picture +
                                "' 'file://" + (folder / name) + "' >/dev/null 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    const test::RgbImage image = test::read_png(test::text_of(picture));
    ASSERT_FALSE(image.bytes.empty()) << name;
    EXPECT_EQ(image.width, 1000u);
    EXPECT_EQ(image.height, 800u);
    EXPECT_GT(darker_part(image, 128), 0.005) << name;  // text and lines
    EXPECT_LT(darker_part(image, 250), 0.2) << name;    // on white
  }
}

}  // namespace
}  // namespace tessera::bench
