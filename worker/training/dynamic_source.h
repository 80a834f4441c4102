#ifndef RUBATO_WORKER_TRAINING_DYNAMIC_SOURCE_H_
#define RUBATO_WORKER_TRAINING_DYNAMIC_SOURCE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "worker/device/step_watchdog.h"
#include "worker/training/batch_source.h"

namespace rubato::worker {

// The batch, and where in its epoch it is: what a step of DYNAMIC dispatch computes.
BatchSource::Next NextOfShard(const Batch& batch, int64_t train_examples);

// DYNAMIC dispatch: leases shards from the coordinator, one ahead of the one in work, and reports those whose pushes
// are all acknowledged. Get, Begun and Stopped on the trainer's thread; OnGrant on any.
class DynamicSource : public BatchSource {
 public:
  struct Options {
    const v1::JobConfig* config = nullptr;
    // Index of this worker.
    uint32_t worker = 0;
    int64_t train_examples = 0;
    Prefetcher* prefetcher = nullptr;
    // Sends a request to the coordinator; it may be lost.
    std::function<void(const v1::ShardRequest&)> send;
    const Clock* clock = nullptr;
    // Is told when the reader is waited for. May be null.
    StepWatchdog* watchdog = nullptr;
  };

  explicit DynamicSource(const Options& options) : options_(options) {}

  // kEmpty when there is no shard for this worker now: others that wait for its step must be able to go on, and it must
  // notice when the plan changes.
  absl::StatusOr<Next> Get(const Parameters::Step& step) override;
  void Begun() override;
  std::vector<v1::ShardPosition> Positions() override;
  const Batch* Upcoming() override { return options_.prefetcher->Peek(); }
  // Reports the last shard, if all of it was pushed.
  void Stopped() override;

  // The coordinator's answer. Answers to old requests change nothing.
  void OnGrant(const v1::ShardGrant& grant);

 private:
  // A shard, or the rest of one, that the coordinator has given to this worker and does not have back yet: it has not
  // answered the report that it is finished.
  struct Held {
    uint64_t shard = 0;
    // Of the first example that no step has begun with.
    int64_t next = 0;
  };

  // Asks for a shard if one is needed, and again if the answer is overdue.
  void Request(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A new request, which takes the place of an open one.
  void SendRequest(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<bool> WaitForBatch(bool may_idle);
  // Batches that are prepared from here on have the plan's size.
  void EnterPlan(const v1::Plan& plan);

  const Options options_;
  // The trainer's.
  std::optional<Batch> batch_;
  uint64_t generation_ = 0;
  bool begun_ = false;
  std::optional<uint64_t> unreported_shard_;  // Done when the next step begins.

  Mutex mu_;
  CondVar granted_;
  v1::ShardRequest request_ ABSL_GUARDED_BY(mu_);  // The open one, or the last.
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time asked_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();  // When the open one was sent first, and last.
  absl::Time sent_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Time none_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();  // When the coordinator said NONE_NOW.
  std::vector<uint64_t> finished_ ABSL_GUARDED_BY(mu_);             // Not confirmed by an answer yet.
  std::vector<Held> held_ ABSL_GUARDED_BY(mu_);
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_DYNAMIC_SOURCE_H_
