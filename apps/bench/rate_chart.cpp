#include "apps/bench/rate_chart.h"

#include "core/atomic_file.h"
#include "metrics/metric.h"

namespace tessera::bench {
namespace {

ChartRange range_of(const Interval& interval) {
  return {interval.low, interval.high};
}

ChartCurve curve_of(const CodecSummary& codec, const std::string& metric, const std::string& highlight,
                    bool over_loss) {
  ChartCurve curve;
  curve.label = codec.codec;
  curve.style = codec.style;
  curve.strong = !highlight.empty() && codec.codec.starts_with(highlight);
  for (const PointSummary& point : codec.points) {
    const Interval* score = point.score(metric);
    if (!score) continue;
    ChartPoint& place = curve.points.emplace_back();
    place.x = over_loss ? point.loss_rate * 100 : point.kbps.mean;
    place.y = score->mean;
    if (!over_loss) {
      place.x_range = range_of(point.kbps);
      place.name = point.point;
    }
    if (score->count > 1) place.y_range = range_of(*score);
  }
  return curve;
}

std::vector<ChartCurve> curves_of(const std::vector<CodecSummary>& codecs, const std::string& metric,
                                  const std::string& highlight, bool over_loss) {
  std::vector<ChartCurve> curves;
  for (const CodecSummary& codec : codecs) curves.push_back(curve_of(codec, metric, highlight, over_loss));
  return curves;
}

}  // namespace

std::vector<ChartCurve> rate_curves(const std::vector<CodecSummary>& codecs, const std::string& metric,
                                    const std::string& highlight) {
  return curves_of(codecs, metric, highlight, false);
}

std::vector<ChartCurve> loss_curves(const std::vector<CodecSummary>& series, const std::string& metric,
                                    const std::string& highlight) {
  return curves_of(series, metric, highlight, true);
}

ChartOptions metric_chart(const std::string& metric) {
  ChartOptions options;
  options.title = metric;
  if (const metrics::MetricInfo* info = metrics::find_metric(metric)) {
    if (!info->unit.empty()) options.title.append(", ").append(info->unit);
    options.better = info->better == metrics::Better::higher ? Toward::up : Toward::down;
  }
  return options;
}

std::string rate_distortion_svg(const Results& results, const std::string& metric,
                                const RateChartOptions& options) {
  const Scope scope = summarize_set(results, options.set, options.bootstrap);
  ChartOptions chart = metric_chart(metric);
  if (!options.title.empty()) chart.title = options.title;
  chart.x_title = "kbps (file bytes x 8 / seconds)";
  chart.logarithmic_x = options.logarithmic_rate;
  chart.width = options.width;
  chart.height = options.height;
  return xy_chart(rate_curves(scope.codecs, metric, options.highlight), chart);
}

Result<void> write_rate_distortion_svg(const std::string& path, const Results& results,
                                       const std::string& metric, const RateChartOptions& options) {
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  if (auto written = file->write(rate_distortion_svg(results, metric, options)); !written) return written;
  return file->commit();
}

}  // namespace tessera::bench
