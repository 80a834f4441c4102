#ifndef RUBATO_CLI_REPORT_TARGET_H_
#define RUBATO_CLI_REPORT_TARGET_H_

#include <array>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job_config.pb.h"
#include "proto/run_record.pb.h"

namespace rubato {

// What evaluations say of how good weights are, beside their loss.
enum class Metric { kAuc, kRecall, kAccuracy, kR2, kRmse };

// The first that was measured is the one by which runs are compared, unless there is a target. In a job of two classes,
// one of which is rare, accuracy says little.
inline constexpr std::array<Metric, 5> kMetrics = {Metric::kAuc, Metric::kRecall, Metric::kAccuracy, Metric::kR2,
                                                   Metric::kRmse};

// "AUC", "recall@k", "accuracy", "R2", "RMSE".
absl::string_view MetricLabel(Metric metric);

// Of a run's last evaluation in summary.json: "final_auc".
absl::string_view MetricField(Metric metric);

// Whether it is told in percent.
bool IsShare(Metric metric);

// "98.76 %", "0.7012"; "-" if it was not measured.
std::string MetricText(Metric metric, const std::optional<double>& value);

// Absent if the evaluation does not have it. The RMSE is that of a regression.
std::optional<double> ValueOf(Metric metric, const v1::EvaluationLine& line);

// What a run is to reach: a value of 0 is no target.
struct Target {
  Metric metric = Metric::kAccuracy;
  double value = 0;

  bool exists() const { return value > 0; }
  // At or above it, an RMSE at or below it. Never if there is no target.
  bool IsReachedBy(const v1::EvaluationLine& line) const;

  friend bool operator==(const Target&, const Target&) = default;
};

// "accuracy 0.985"; "no target".
std::string TargetText(const Target& target);

// "98.5 %", "AUC 0.7".
std::string ShortTargetText(const Target& target);

Target TargetOf(const v1::EvaluationConfig& config);

// Makes it the config's only one.
void SetTarget(const Target& target, v1::EvaluationConfig* config);

// What `text` says: "0.985" is an accuracy, "auc:0.7" and "rmse:1.2" are what they say, and "0" is none.
// InvalidArgument says what is allowed.
absl::StatusOr<Target> ParseTarget(absl::string_view text);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_TARGET_H_
