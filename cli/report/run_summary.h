#ifndef RUBATO_CLI_REPORT_RUN_SUMMARY_H_
#define RUBATO_CLI_REPORT_RUN_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/report/run_record.h"
#include "cli/report/target.h"

namespace rubato {

// What one run came to. An absent number was not measured.
struct RunSummary {
  // The job ended without an error.
  bool ok = false;
  std::string error;
  // Of the final evaluation, or of the last one when the run has no final one.
  std::optional<double> final_accuracy;
  // With two classes.
  std::optional<double> final_auc;
  // With evaluation.recall_at.
  std::optional<double> final_recall;
  // Of a regression, in place of the accuracy.
  std::optional<double> final_r2;
  std::optional<double> final_rmse;
  std::optional<double> final_loss;
  // Where the run's last examples were trained, for jobs that evaluate nothing; absent if its workers do not tell.
  std::optional<double> training_loss;
  std::optional<double> training_accuracy;
  // By how much the model does better with what it has trained on: the accuracy of the last epoch's examples while they
  // were trained minus the final one, or of a model without accuracy the final loss minus theirs.
  std::optional<double> generalization_gap;
  // 0 if clients do not tell of their examples.
  double examples_per_second = 0;
  // Of the furthest worker.
  double steps_per_second = 0;
  // From the start of training to the end of the job.
  double seconds = 0;
  // Time of the first evaluation that reached the target; absent without a target, or when it was not reached.
  std::optional<double> seconds_to_target;
  // What had been done where that evaluation's weights were, and in all; absent if the record does not say.
  std::optional<double> samples_to_target;
  std::optional<double> updates_to_target;
  std::optional<double> samples;
  std::optional<double> updates;
  double staleness_mean = 0;
  // The largest staleness of any step; at least this much if the record's last bucket was used.
  int64_t staleness_max = 0;
  // Part of all workers' time that was spent waiting for weights.
  double waiting_share = 0;
  // Of all workers: payload bytes of gradients and of weights.
  double pushed_bytes = 0;
  double pulled_bytes = 0;
};

// What the run's last evaluation says, of the fields above.
std::optional<double> FinalValue(const RunSummary& summary, Metric metric);

// Summarises a run.
//
// Throughput is what the end line says: examples trained per second of training, without the final evaluation and
// checkpoint. Without an end line it is the examples divided by the time of the first progress line that counts them.
RunSummary SummarizeRun(const RunRecord& record, const Target& target);

// The mean of each number over the runs; absent if it is absent in one of them. `ok` when all are. Of staleness_max
// it is the largest. Of no runs: all zero, not ok.
RunSummary MeanOfRuns(const std::vector<RunSummary>& runs);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_RUN_SUMMARY_H_
