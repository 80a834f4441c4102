#include "cli/report/run_summary.h"

#include <algorithm>

#include "cli/report/work_done.h"

namespace rubato {
namespace {

double LastTime(const RunRecord& record) {
  if (record.end.has_value()) return record.end->t();
  double t = 0;
  if (!record.progress.empty()) t = std::max(t, record.progress.back().t());
  if (!record.evaluations.empty()) t = std::max(t, record.evaluations.back().t());
  return t;
}

double Throughput(const RunRecord& record) {
  if (record.end.has_value() && record.end->examples_per_second() > 0) return record.end->examples_per_second();
  for (const v1::ProgressLine& line : record.progress) {
    bool all = line.examples() >= record.progress.back().examples();
    if (all && line.t() > 0) return line.examples() / line.t();
  }
  return 0;
}

double StepsPerSecond(const RunRecord& record) {
  for (const v1::ProgressLine& line : record.progress) {
    if (line.step() >= record.progress.back().step() && line.t() > 0) return line.step() / line.t();
  }
  return 0;
}

void AddStaleness(const v1::ProgressLine& line, RunSummary* summary) {
  double steps = 0;
  double sum = 0;
  for (int staleness = 0; staleness < line.staleness_counts_size(); ++staleness) {
    const double count = line.staleness_counts(staleness);
    if (count <= 0) continue;
    steps += count;
    sum += count * staleness;
    summary->staleness_max = staleness;
  }
  if (steps > 0) summary->staleness_mean = sum / steps;
}

double WaitingShare(const v1::ProgressLine& line) {
  double total = 0;
  double waiting = 0;
  for (const v1::WorkerTotals& worker : line.workers()) {
    total += worker.data_seconds() + worker.compute_seconds() + worker.push_seconds() + worker.pull_wait_seconds();
    waiting += worker.pull_wait_seconds();
  }
  return total > 0 ? waiting / total : line.waiting_share();
}

using Measured = std::optional<double>;

// The mean over the examples of the last epoch of what progress lines have; absent if one has none.
Measured OverLastEpoch(const RunRecord& record, Measured (*value)(const v1::ProgressLine&)) {
  double sum = 0, examples = 0, before = 0;
  for (const v1::ProgressLine& line : record.progress) {
    const double added = line.examples() - before;
    before = line.examples();
    if (added <= 0 || line.epoch() <= record.progress.back().epoch() - 1) continue;
    const Measured measured = value(line);
    if (!measured.has_value()) return std::nullopt;
    sum += added * *measured;
    examples += added;
  }
  if (examples <= 0) return std::nullopt;
  return sum / examples;
}

Measured GeneralizationGap(const RunRecord& record, const RunSummary& summary) {
  if (summary.final_accuracy.has_value()) {
    const Measured accuracy = OverLastEpoch(record, [](const v1::ProgressLine& line) {
      return line.has_accuracy() ? Measured(line.accuracy()) : std::nullopt;
    });
    return accuracy.has_value() ? Measured(*accuracy - *summary.final_accuracy) : std::nullopt;
  }
  const Measured loss = OverLastEpoch(
      record, [](const v1::ProgressLine& line) { return line.has_loss() ? Measured(line.loss()) : std::nullopt; });
  return loss.has_value() && summary.final_loss.has_value() ? Measured(*summary.final_loss - *loss) : std::nullopt;
}

std::optional<double> MeanOrAbsent(const std::vector<RunSummary>& runs, std::optional<double> RunSummary::*field) {
  double sum = 0;
  for (const RunSummary& run : runs) {
    if (!(run.*field).has_value()) return std::nullopt;
    sum += *(run.*field);
  }
  return sum / static_cast<double>(runs.size());
}

double Mean(const std::vector<RunSummary>& runs, double RunSummary::*field) {
  double sum = 0;
  for (const RunSummary& run : runs) sum += run.*field;
  return sum / static_cast<double>(runs.size());
}

}  // namespace

std::optional<double> FinalValue(const RunSummary& summary, Metric metric) {
  switch (metric) {
    case Metric::kAuc:
      return summary.final_auc;
    case Metric::kRecall:
      return summary.final_recall;
    case Metric::kAccuracy:
      return summary.final_accuracy;
    case Metric::kR2:
      return summary.final_r2;
    case Metric::kRmse:
      return summary.final_rmse;
  }
  return std::nullopt;
}

RunSummary SummarizeRun(const RunRecord& record, const Target& target) {
  RunSummary summary;
  summary.ok = record.end.has_value() && record.end->ok();
  summary.error = record.end.has_value() ? record.end->error() : "the run record has no end";
  summary.seconds = LastTime(record);
  summary.examples_per_second = Throughput(record);
  if (!record.evaluations.empty()) {
    const v1::EvaluationLine& last = record.evaluations.back();
    summary.final_accuracy = ValueOf(Metric::kAccuracy, last);
    summary.final_auc = ValueOf(Metric::kAuc, last);
    summary.final_recall = ValueOf(Metric::kRecall, last);
    summary.final_r2 = ValueOf(Metric::kR2, last);
    summary.final_rmse = ValueOf(Metric::kRmse, last);
    if (last.has_loss()) summary.final_loss = last.loss();
  }
  for (const v1::EvaluationLine& line : record.evaluations) {
    if (!target.IsReachedBy(line)) continue;
    summary.seconds_to_target = line.t();
    const WorkDone work = WorkAt(record, line);
    summary.samples_to_target = work.samples;
    summary.updates_to_target = work.updates;
    break;
  }
  const WorkDone work = WorkAtEnd(record);
  summary.samples = work.samples;
  summary.updates = work.updates;
  if (!record.progress.empty()) {
    const v1::ProgressLine& last = record.progress.back();
    AddStaleness(last, &summary);
    if (last.has_loss()) summary.training_loss = last.loss();
    if (last.has_accuracy()) summary.training_accuracy = last.accuracy();
    summary.generalization_gap = GeneralizationGap(record, summary);
    summary.steps_per_second = StepsPerSecond(record);
    summary.waiting_share = WaitingShare(last);
    summary.pushed_bytes = last.sent_bytes();
    summary.pulled_bytes = last.received_bytes();
  }
  return summary;
}

RunSummary MeanOfRuns(const std::vector<RunSummary>& runs) {
  RunSummary mean;
  if (runs.empty()) return mean;
  mean.ok = true;
  for (const RunSummary& run : runs) {
    mean.ok = mean.ok && run.ok;
    if (mean.error.empty()) mean.error = run.error;
    mean.staleness_max = std::max(mean.staleness_max, run.staleness_max);
  }
  mean.final_accuracy = MeanOrAbsent(runs, &RunSummary::final_accuracy);
  mean.final_auc = MeanOrAbsent(runs, &RunSummary::final_auc);
  mean.final_recall = MeanOrAbsent(runs, &RunSummary::final_recall);
  mean.final_r2 = MeanOrAbsent(runs, &RunSummary::final_r2);
  mean.final_rmse = MeanOrAbsent(runs, &RunSummary::final_rmse);
  mean.final_loss = MeanOrAbsent(runs, &RunSummary::final_loss);
  mean.training_loss = MeanOrAbsent(runs, &RunSummary::training_loss);
  mean.training_accuracy = MeanOrAbsent(runs, &RunSummary::training_accuracy);
  mean.generalization_gap = MeanOrAbsent(runs, &RunSummary::generalization_gap);
  mean.steps_per_second = Mean(runs, &RunSummary::steps_per_second);
  mean.seconds_to_target = MeanOrAbsent(runs, &RunSummary::seconds_to_target);
  mean.samples_to_target = MeanOrAbsent(runs, &RunSummary::samples_to_target);
  mean.updates_to_target = MeanOrAbsent(runs, &RunSummary::updates_to_target);
  mean.samples = MeanOrAbsent(runs, &RunSummary::samples);
  mean.updates = MeanOrAbsent(runs, &RunSummary::updates);
  mean.examples_per_second = Mean(runs, &RunSummary::examples_per_second);
  mean.seconds = Mean(runs, &RunSummary::seconds);
  mean.staleness_mean = Mean(runs, &RunSummary::staleness_mean);
  mean.waiting_share = Mean(runs, &RunSummary::waiting_share);
  mean.pushed_bytes = Mean(runs, &RunSummary::pushed_bytes);
  mean.pulled_bytes = Mean(runs, &RunSummary::pulled_bytes);
  return mean;
}

}  // namespace rubato
