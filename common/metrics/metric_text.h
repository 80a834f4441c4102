#ifndef RUBATO_COMMON_METRICS_METRIC_TEXT_H_
#define RUBATO_COMMON_METRICS_METRIC_TEXT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace rubato {

// Builds a page of metrics in Prometheus' text format, version 0.0.4. There is no registry: whoever shows metrics calls
// this with what it knows when it is asked. Each name is added once, with all of its samples. Not thread-safe.
//
//   MetricText text(MetricText::Labels{{"role", "worker"}, {"index", "0"}});
//   text.Counter("rubato_worker_steps_total", "Steps that were done.", 12);
//   reply.body = text.Take();
class MetricText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  struct Sample {
    Labels labels;
    double value = 0;
  };

  // `common`: labels of every sample.
  explicit MetricText(Labels common) : common_(std::move(common)) {}

  // Names are in Prometheus' convention: base units, and "_total" at the end of a counter's. `help` is one sentence.
  void Counter(absl::string_view name, absl::string_view help, double value);
  void Gauge(absl::string_view name, absl::string_view help, double value);
  // Nothing is written if there is no sample.
  void Counters(absl::string_view name, absl::string_view help, const std::vector<Sample>& samples);
  void Gauges(absl::string_view name, absl::string_view help, const std::vector<Sample>& samples);
  // counts[i]: how many were over bounds[i - 1] and up to bounds[i]; further ones are over the last bound. Missing ones
  // are 0. `sum`: of all that was counted.
  void Histogram(absl::string_view name, absl::string_view help, absl::Span<const double> bounds,
                 absl::Span<const int64_t> counts, double sum);

  // The page.
  std::string Take() { return std::move(text_); }

 private:
  void Family(absl::string_view name, absl::string_view help, absl::string_view type);
  void Line(absl::string_view name, const Labels& labels, double value);

  const Labels common_;
  std::string text_;
};

// What the page is served as.
inline constexpr char kMetricContentType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace rubato

#endif  // RUBATO_COMMON_METRICS_METRIC_TEXT_H_
