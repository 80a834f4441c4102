#ifndef RUBATO_COORDINATOR_RULES_JOB_PROGRESS_H_
#define RUBATO_COORDINATOR_RULES_JOB_PROGRESS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/coordinator.pb.h"

namespace rubato::coordinator {

// Sums over all workers, lost ones included, since the job began.
struct ProgressTotals {
  // The furthest worker's.
  int64_t step = 0;
  double epoch = 0;
  // Where it is furthest.
  double learning_rate = 0;
  int64_t examples = 0;
  double loss = 0;
  double correct = 0;
  double data_seconds = 0;
  double compute_seconds = 0;
  double push_seconds = 0;
  double pull_wait_seconds = 0;
  int64_t sent_bytes = 0;
  int64_t received_bytes = 0;
  int64_t non_finite = 0;
  int64_t overflows = 0;
  std::vector<int64_t> staleness_counts;

  // Part of the workers' time that went into waiting for weights, 0 to 1.
  double WaitingShare() const;
  // Mean version staleness of a step; the last count is taken at its own index.
  double StalenessMean() const;
  // Of pushes, in versions.
  double StalenessSum() const;
  double StalenessCount() const;
};

// Adds the workers' heartbeats up. A worker counts from the start of its process, so the last heartbeat of each
// incarnation is kept and a lost heartbeat loses nothing. Pure.
class JobProgress {
 public:
  // One line of the run record; loss and accuracy are means over the examples since the previous line, or that line's
  // own when there were none.
  struct Interval {
    ProgressTotals totals;
    double loss = 0;
    double accuracy = 0;
    double examples_per_second = 0;
    // Loss and accuracy are of examples, not 0 for want of any.
    bool measured = false;
    // Of the gradients that SYNC steps apply, if any were measured.
    v1::GradientNoise gradient_noise;
  };

  JobProgress() = default;
  // Of a job that goes on from a checkpoint: what it had done.
  explicit JobProgress(ProgressTotals base) : base_(std::move(base)) {}

  void OnHeartbeat(const v1::TaskId& worker, const v1::WorkerProgress& progress);
  ProgressTotals Totals() const;
  // The last heartbeat of an incarnation; null when there was none.
  const v1::WorkerProgress* Find(const v1::TaskId& worker) const;
  // Ends an interval.
  Interval TakeInterval(absl::Time now);
  // Begins the first one; after a restart it leaves out what was done before.
  void StartInterval(absl::Time now);
  // By index, the incarnations of a worker added up (`step` and the like are the last incarnation's).
  std::map<uint32_t, v1::WorkerProgress> ByWorker() const;
  // Means of the last interval that had examples.
  const Interval& last_interval() const { return last_; }
  // Over the last seconds.
  double ExamplesPerSecond() const;

 private:
  // By index and order of appearance of the incarnation.
  struct Entry {
    v1::TaskId worker;
    v1::WorkerProgress progress;
  };
  ProgressTotals base_;
  std::map<uint32_t, std::vector<Entry>> workers_;
  ProgressTotals before_;
  absl::Time since_;
  Interval last_;
  // Examples at the ends of the last intervals.
  std::deque<std::pair<absl::Time, int64_t>> history_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_JOB_PROGRESS_H_
