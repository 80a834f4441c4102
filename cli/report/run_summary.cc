#include "cli/report/run_summary.h"

#include <algorithm>

namespace rubato {
namespace {

double LastTime(const RunRecord& record) {
  if (record.end.has_value()) return record.end->t;
  double t = 0;
  if (!record.progress.empty()) t = std::max(t, record.progress.back().t);
  if (!record.evaluations.empty()) t = std::max(t, record.evaluations.back().t);
  return t;
}

double Throughput(const RunRecord& record) {
  if (record.end.has_value() && record.end->examples_per_second > 0) return record.end->examples_per_second;
  for (const ProgressLine& line : record.progress) {
    bool all = line.examples >= record.progress.back().examples;
    if (all && line.t > 0) return static_cast<double>(line.examples) / line.t;
  }
  return 0;
}

void AddStaleness(const std::vector<int64_t>& counts, RunSummary* summary) {
  double steps = 0;
  double sum = 0;
  for (size_t staleness = 0; staleness < counts.size(); ++staleness) {
    if (counts[staleness] <= 0) continue;
    steps += static_cast<double>(counts[staleness]);
    sum += static_cast<double>(counts[staleness]) * static_cast<double>(staleness);
    summary->staleness_max = static_cast<int64_t>(staleness);
  }
  if (steps > 0) summary->staleness_mean = sum / steps;
}

double WaitingShare(const ProgressLine& line) {
  double total = 0;
  double waiting = 0;
  for (const WorkerTotals& worker : line.workers) {
    total += worker.TotalSeconds();
    waiting += worker.pull_wait_seconds;
  }
  return total > 0 ? waiting / total : line.waiting_share;
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

RunSummary SummarizeRun(const RunRecord& record, double target_accuracy) {
  RunSummary summary;
  summary.ok = record.end.has_value() && record.end->ok;
  summary.error = record.end.has_value() ? record.end->error : "the run record has no end";
  summary.seconds = LastTime(record);
  summary.examples_per_second = Throughput(record);
  for (const EvaluationLine& line : record.evaluations) {
    summary.final_accuracy = line.accuracy;
    summary.final_loss = line.loss;
    bool reached = target_accuracy > 0 && line.accuracy.has_value() && *line.accuracy >= target_accuracy;
    if (reached && !summary.seconds_to_target.has_value()) summary.seconds_to_target = line.t;
  }
  if (!record.progress.empty()) {
    AddStaleness(record.progress.back().staleness_counts, &summary);
    summary.waiting_share = WaitingShare(record.progress.back());
    summary.pushed_bytes = record.progress.back().sent_bytes;
    summary.pulled_bytes = record.progress.back().received_bytes;
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
  mean.final_loss = MeanOrAbsent(runs, &RunSummary::final_loss);
  mean.seconds_to_target = MeanOrAbsent(runs, &RunSummary::seconds_to_target);
  mean.examples_per_second = Mean(runs, &RunSummary::examples_per_second);
  mean.seconds = Mean(runs, &RunSummary::seconds);
  mean.staleness_mean = Mean(runs, &RunSummary::staleness_mean);
  mean.waiting_share = Mean(runs, &RunSummary::waiting_share);
  mean.pushed_bytes = Mean(runs, &RunSummary::pushed_bytes);
  mean.pulled_bytes = Mean(runs, &RunSummary::pulled_bytes);
  return mean;
}

}  // namespace rubato
