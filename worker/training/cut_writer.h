#ifndef RUBATO_WORKER_TRAINING_CUT_WRITER_H_
#define RUBATO_WORKER_TRAINING_CUT_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "proto/coordinator.pb.h"
#include "worker/ps_client/worker_part.h"

namespace rubato::worker {

// Writes this worker's parts of cuts to the checkpoint directory, and removes old ones, on a thread of its own:
// training never waits for a disk. A part that cannot be written is tried again until it is, or a newer one takes its
// place; so no more than two are in memory. Thread-safe.
//
//   cuts.Take(plan, positions, part);          // The worker has begun the first step of a plan that has a cut.
//   *heartbeat.mutable_cut() = cuts.progress();
class CutWriter {
 public:
  struct Options {
    // That of all checkpoints.
    std::string directory;
    std::string job_name;
    uint32_t servers = 0;
    v1::TaskId task;
    // Between two tries: doubled from the first to the second.
    absl::Duration retry_min = absl::Milliseconds(500);
    absl::Duration retry_max = absl::Seconds(10);
    // Both outlive the writer.
    const Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  explicit CutWriter(Options options);
  // Waits for what is being written; what waits is given up.
  ~CutWriter();
  CutWriter(const CutWriter&) = delete;
  CutWriter& operator=(const CutWriter&) = delete;

  // The worker's part of plan.cut(). Returns at once. One with a name that is no checkpoint's of a job that trains is
  // not written, which its progress and the log say.
  void Take(const v1::Plan& plan, std::vector<v1::ShardPosition> shards, WorkerPart part);
  // Removes this worker's parts of checkpoints that are not named. That of the last cut stays in any case.
  void Keep(const v1::KeepCheckpoints& keep);

  // Of the last cut; id 0: there was none.
  v1::CutProgress progress();

 private:
  struct Pending {
    v1::Plan plan;
    WorkerPart part;
  };

  void StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Run();
  // Waits for something to do; false when it is time to end.
  bool AwaitWork(std::optional<Pending>* part, std::optional<v1::KeepCheckpoints>* keep);
  absl::Status Write(const Pending& pending, int64_t* bytes);
  void OnWritten(int64_t bytes, const v1::Cut& cut);
  void OnFailed(const absl::Status& status, Pending pending);
  absl::Status Remove(const v1::KeepCheckpoints& keep);
  std::string last_name();

  const Options options_;
  Mutex mu_;
  CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<Pending> pending_ ABSL_GUARDED_BY(mu_);
  std::optional<v1::KeepCheckpoints> keep_ ABSL_GUARDED_BY(mu_);
  absl::Time retry_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Duration retry_pause_ ABSL_GUARDED_BY(mu_);
  v1::CutProgress progress_ ABSL_GUARDED_BY(mu_);
  std::string last_name_ ABSL_GUARDED_BY(mu_);
  // From the first work on.
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_CUT_WRITER_H_
