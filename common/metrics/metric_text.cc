#include "common/metrics/metric_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace rubato {
namespace {

// The shortest text that reads back as the same number.
std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), value);
  return std::string(digits, end.ptr);
}

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

}  // namespace

void MetricText::Family(absl::string_view name, absl::string_view help, absl::string_view type) {
  absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

void MetricText::Line(absl::string_view name, const Labels& labels, double value) {
  absl::StrAppend(&text_, name);
  char before = '{';
  for (const Labels* list : {&common_, &labels}) {
    for (const auto& [label, text] : *list) {
      absl::StrAppend(&text_, std::string(1, before), label, "=\"", Escaped(text), "\"");
      before = ',';
    }
  }
  absl::StrAppend(&text_, before == ',' ? "} " : " ", Number(value), "\n");
}

void MetricText::Counter(absl::string_view name, absl::string_view help, double value) {
  Counters(name, help, {{{}, value}});
}

void MetricText::Gauge(absl::string_view name, absl::string_view help, double value) {
  Gauges(name, help, {{{}, value}});
}

void MetricText::Counters(absl::string_view name, absl::string_view help, const std::vector<Sample>& samples) {
  if (samples.empty()) return;
  Family(name, help, "counter");
  for (const Sample& sample : samples) Line(name, sample.labels, sample.value);
}

void MetricText::Gauges(absl::string_view name, absl::string_view help, const std::vector<Sample>& samples) {
  if (samples.empty()) return;
  Family(name, help, "gauge");
  for (const Sample& sample : samples) Line(name, sample.labels, sample.value);
}

void MetricText::Histogram(absl::string_view name, absl::string_view help, absl::Span<const double> bounds,
                           absl::Span<const int64_t> counts, double sum) {
  Family(name, help, "histogram");
  const std::string bucket = absl::StrCat(name, "_bucket");
  double count = 0;
  for (size_t i = 0; i < std::max(bounds.size(), counts.size()); ++i) {
    if (i < counts.size()) count += static_cast<double>(counts[i]);
    if (i < bounds.size()) Line(bucket, {{"le", Number(bounds[i])}}, count);
  }
  Line(bucket, {{"le", "+Inf"}}, count);
  Line(absl::StrCat(name, "_sum"), {}, sum);
  Line(absl::StrCat(name, "_count"), {}, count);
}

}  // namespace rubato
