#include "cli/report/target.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace rubato {

absl::string_view MetricLabel(Metric metric) {
  switch (metric) {
    case Metric::kAuc:
      return "AUC";
    case Metric::kRecall:
      return "recall@k";
    case Metric::kAccuracy:
      return "accuracy";
    case Metric::kR2:
      return "R2";
    case Metric::kRmse:
      return "RMSE";
  }
  return "";
}

absl::string_view MetricField(Metric metric) {
  switch (metric) {
    case Metric::kAuc:
      return "final_auc";
    case Metric::kRecall:
      return "final_recall";
    case Metric::kAccuracy:
      return "final_accuracy";
    case Metric::kR2:
      return "final_r2";
    case Metric::kRmse:
      return "final_rmse";
  }
  return "";
}

bool IsShare(Metric metric) { return metric == Metric::kAccuracy || metric == Metric::kRecall; }

std::string MetricText(Metric metric, const std::optional<double>& value) {
  if (!value.has_value()) return "-";
  return IsShare(metric) ? absl::StrFormat("%.2f %%", *value * 100) : absl::StrFormat("%.4f", *value);
}

std::optional<double> ValueOf(Metric metric, const v1::EvaluationLine& line) {
  const auto measured = [](bool has, double value) { return has ? std::optional<double>(value) : std::nullopt; };
  switch (metric) {
    case Metric::kAuc:
      return measured(line.has_auc(), line.auc());
    case Metric::kRecall:
      return measured(line.has_recall(), line.recall());
    case Metric::kAccuracy:
      return measured(line.has_accuracy(), line.accuracy());
    case Metric::kR2:
      return measured(line.has_r2(), line.r2());
    case Metric::kRmse:
      // Its loss is the mean squared error.
      return measured(line.has_r2() && line.has_loss(), std::sqrt(line.loss()));
  }
  return std::nullopt;
}

bool Target::IsReachedBy(const v1::EvaluationLine& line) const {
  const std::optional<double> reached = ValueOf(metric, line);
  if (!exists() || !reached.has_value()) return false;
  return metric == Metric::kRmse ? *reached <= value : *reached >= value;
}

std::string TargetText(const Target& target) {
  return target.exists() ? absl::StrCat(MetricLabel(target.metric), " ", target.value) : "no target";
}

std::string ShortTargetText(const Target& target) {
  return IsShare(target.metric) ? absl::StrFormat("%.4g %%", target.value * 100) : TargetText(target);
}

Target TargetOf(const v1::EvaluationConfig& config) {
  if (config.target_auc() > 0) return {.metric = Metric::kAuc, .value = config.target_auc()};
  if (config.target_rmse() > 0) return {.metric = Metric::kRmse, .value = config.target_rmse()};
  return {.metric = Metric::kAccuracy, .value = config.target_accuracy()};
}

void SetTarget(const Target& target, v1::EvaluationConfig* config) {
  config->set_target_accuracy(target.metric == Metric::kAccuracy ? target.value : 0);
  config->set_target_auc(target.metric == Metric::kAuc ? target.value : 0);
  config->set_target_rmse(target.metric == Metric::kRmse ? target.value : 0);
}

absl::StatusOr<Target> ParseTarget(absl::string_view text) {
  Target target;
  absl::string_view number = text;
  if (absl::ConsumePrefix(&number, "auc:")) {
    target.metric = Metric::kAuc;
  } else if (absl::ConsumePrefix(&number, "rmse:")) {
    target.metric = Metric::kRmse;
  }
  const double most = target.metric == Metric::kRmse ? INFINITY : 1;
  // Written so that NaN is refused.
  const bool good = absl::SimpleAtod(number, &target.value) && target.value >= 0 && target.value <= most &&
                    std::isfinite(target.value);
  if (good) return target.exists() ? target : Target();
  return absl::InvalidArgumentError(
      absl::StrCat("value \"", text, "\"; allowed: an accuracy or auc:AUC, 0 to 1, rmse:RMSE, or 0 for no target"));
}

}  // namespace rubato
