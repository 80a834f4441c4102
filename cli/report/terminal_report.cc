#include "cli/report/terminal_report.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/report/terminal_plot.h"
#include "cli/report/text_table.h"
#include "cli/report/to_target.h"

namespace rubato {
namespace {

std::string Megabytes(double bytes) { return absl::StrFormat("%.1f MB", bytes * 1e-6); }

// Of runs of which some missed the target, at least their restricted mean.
std::string TimeToTarget(const ComparedMode& mode, double horizon) {
  const ModeToTarget to_target = ToTargetOfMode(mode, Effort::kSeconds, horizon);
  const std::optional<double> mean = MeanOfMode(mode).seconds_to_target;
  if (mean.has_value()) return absl::StrFormat("%.1f s", *mean);
  if (to_target.reached > 0 && to_target.restricted_mean.has_value()) {
    return absl::StrFormat(">%.1f s (%d of %d)", *to_target.restricted_mean, to_target.reached, to_target.runs);
  }
  return to_target.runs > 1 ? absl::StrCat("0 of ", to_target.runs, " reached it") : "not reached";
}

// What is to be said of the times to target; empty if all runs of each mode reached it, or none.
std::string NoteOnTarget(const Comparison& comparison, double horizon) {
  for (const ComparedMode& mode : comparison.modes) {
    const ModeToTarget to_target = ToTargetOfMode(mode, Effort::kSeconds, horizon);
    if (to_target.reached == 0 || to_target.reached == to_target.runs) continue;
    return absl::StrFormat(
        "> where runs missed the target: the mean of what was seen of them up to %.1f s "
        "(Kaplan-Meier)\n",
        horizon);
  }
  return "";
}

std::string Fixed(const std::optional<double>& value) {
  return value.has_value() ? absl::StrFormat("%.4f", *value) : "-";
}

// A curve for each mode, of its first run.
std::vector<PlotSeries> SeriesOf(const Comparison& comparison,
                                 absl::FunctionRef<void(const RunRecord&, PlotSeries*)> add) {
  std::vector<PlotSeries> series;
  for (const ComparedMode& mode : comparison.modes) {
    if (mode.runs.empty()) continue;
    PlotSeries curve;
    curve.name = mode.name;
    add(mode.runs[0].record, &curve);
    series.push_back(std::move(curve));
  }
  return series;
}

void AddMetric(Metric metric, const RunRecord& record, PlotSeries* curve) {
  for (const v1::EvaluationLine& line : record.evaluations) {
    if (const std::optional<double> value = ValueOf(metric, line)) curve->points.emplace_back(line.t(), *value);
  }
}

// The title of the column of examples or steps.
const char* SpeedTitle(const Comparison& comparison) { return HasExamples(comparison) ? "examples/s" : "steps/s"; }

std::string Speed(const Comparison& comparison, const RunSummary& mean) {
  return HasExamples(comparison) ? absl::StrFormat("%.0f", mean.examples_per_second)
                                 : absl::StrFormat("%.1f", mean.steps_per_second);
}

bool TellsTrainingAccuracy(const Comparison& comparison) {
  return std::any_of(comparison.modes.begin(), comparison.modes.end(),
                     [](const ComparedMode& mode) { return MeanOfMode(mode).training_accuracy.has_value(); });
}

// What was measured, and loss: held out, or of training if nothing was evaluated.
std::vector<std::string> ScoreTitles(const Comparison& comparison) {
  if (HasEvaluations(comparison)) {
    std::vector<std::string> titles;
    for (const Metric metric : MetricsOf(comparison)) titles.emplace_back(MetricLabel(metric));
    titles.push_back("loss");
    return titles;
  }
  if (!TellsTrainingAccuracy(comparison)) return {"training loss"};
  return {"training accuracy", "training loss"};
}

std::vector<std::string> Scores(const Comparison& comparison, const RunSummary& mean) {
  if (!HasEvaluations(comparison)) {
    if (!TellsTrainingAccuracy(comparison)) return {Fixed(mean.training_loss)};
    return {MetricText(Metric::kAccuracy, mean.training_accuracy), Fixed(mean.training_loss)};
  }
  std::vector<std::string> scores;
  for (const Metric metric : MetricsOf(comparison)) scores.push_back(MetricText(metric, FinalValue(mean, metric)));
  scores.push_back(Fixed(mean.final_loss));
  return scores;
}

void AddTrainingLoss(const RunRecord& record, PlotSeries* curve) {
  for (const v1::ProgressLine& line : record.progress) {
    if (line.has_loss()) curve->points.emplace_back(line.t(), line.loss());
  }
}

}  // namespace

std::string FormatTable(const Comparison& comparison) {
  const bool target = comparison.target.exists();
  const double horizon = TargetHorizon(comparison, Effort::kSeconds);
  std::vector<std::string> header = {"mode"};
  for (const std::string& title : ScoreTitles(comparison)) header.push_back(title);
  if (target) header.push_back(absl::StrCat("to ", ShortTargetText(comparison.target)));
  for (const char* title :
       {SpeedTitle(comparison), "version staleness", "waiting", "pushed", "pulled", "seconds", "audit"}) {
    header.push_back(title);
  }
  TextTable table(header);
  for (const ComparedMode& mode : comparison.modes) {
    RunSummary mean = MeanOfMode(mode);
    std::vector<std::string> row = {mode.name};
    for (std::string& score : Scores(comparison, mean)) row.push_back(std::move(score));
    if (target) row.push_back(TimeToTarget(mode, horizon));
    row.push_back(Speed(comparison, mean));
    row.push_back(absl::StrFormat("%.2f (max %d)", mean.staleness_mean, mean.staleness_max));
    row.push_back(absl::StrFormat("%.1f %%", mean.waiting_share * 100));
    row.push_back(Megabytes(mean.pushed_bytes));
    row.push_back(Megabytes(mean.pulled_bytes));
    row.push_back(absl::StrFormat("%.1f", mean.seconds));
    row.push_back(mean.ok ? std::string(AuditResultName(AuditOfMode(mode))) : "FAILED");
    table.AddRow(std::move(row));
  }
  std::string text = table.Format();
  if (target) absl::StrAppend(&text, NoteOnTarget(comparison, horizon));
  for (const Tuning& tuning : comparison.tunings) absl::StrAppend(&text, TuningText(tuning), "\n");
  for (const ComparedMode& mode : comparison.modes) {
    for (const std::string& skipped : SkippedSteps(mode)) absl::StrAppend(&text, mode.name, ": ", skipped, "\n");
    for (const std::string& rollback : Rollbacks(mode)) absl::StrAppend(&text, mode.name, ": ", rollback, "\n");
  }
  return text;
}

std::string FormatCurves(const Comparison& comparison, bool color) {
  PlotOptions options;
  options.color = color;
  options.x_label = "seconds";
  const Metric metric = MetricsOf(comparison).front();
  options.title = absl::StrCat("held-out ", MetricLabel(metric));
  if (comparison.target.exists()) options.level = comparison.target.value;
  const auto add_metric = [&](const RunRecord& record, PlotSeries* curve) { AddMetric(metric, record, curve); };
  std::string curves = PlotCurves(SeriesOf(comparison, add_metric), options);
  if (!curves.empty()) return curves;
  options.title = "training loss";
  options.level.reset();
  return PlotCurves(SeriesOf(comparison, AddTrainingLoss), options);
}

}  // namespace rubato
