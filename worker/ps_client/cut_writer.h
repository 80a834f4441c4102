#ifndef RUBATO_WORKER_PS_CLIENT_CUT_WRITER_H_
#define RUBATO_WORKER_PS_CLIENT_CUT_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/part_copies/part_peers.h"
#include "common/storage/part_writer.h"
#include "proto/coordinator.pb.h"
#include "worker/ps_client/worker_part.h"

namespace rubato::worker {

// Writes this worker's parts of cuts to the checkpoint directory, and removes old ones, on a PartWriter's thread:
// training never waits for a disk. No more than two parts are in memory. Thread-safe.
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
    PartQueue::Options queue = {};
    // Both outlive the writer.
    const Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  // Its destructor waits for what is being written; what waits is given up.
  explicit CutWriter(Options options);

  // Who keeps copies of parts from now on. Null, as before the first call: nobody.
  void SetPeers(std::shared_ptr<const PartPeers> peers);
  // The worker's part of plan.cut(). Returns at once. One with a name that no cut can have is not written, which its
  // progress and the log say.
  void Take(const v1::Plan& plan, std::vector<v1::ShardPosition> shards, WorkerPart part);
  // Removes this worker's parts of checkpoints that are not named. That of the last cut stays in any case.
  void Keep(const v1::KeepCheckpoints& keep);

  // Of the last cut; id 0: there was none.
  v1::CutProgress progress();

 private:
  absl::StatusOr<int64_t> Write(const v1::Plan& plan, const WorkerPart& part) const;

  const Options options_;
  PartWriter writer_;
  Mutex mu_;
  // Of the last cut: its id, that the worker has entered it, and with which shards.
  v1::CutProgress entered_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const PartPeers> peers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_CUT_WRITER_H_
