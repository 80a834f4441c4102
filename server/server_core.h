#ifndef RUBATO_SERVER_SERVER_CORE_H_
#define RUBATO_SERVER_SERVER_CORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/limits/refusal_log.h"
#include "common/log.h"
#include "common/model_spec.h"
#include "common/mutex.h"
#include "common/part_copies/part_peers.h"
#include "common/security/task_security.h"
#include "common/shared_memory/arena.h"
#include "common/shared_memory/blocks.h"
#include "common/shared_memory/listener.h"
#include "common/storage/checkpoint_restorer.h"
#include "common/storage/part_writer.h"
#include "common/trace/trace_recorder.h"
#include "common/transport/exchange_server.h"
#include "common/wire/exchange_codec.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "server/part_files.h"
#include "server/partition_owner.h"
#include "server/partition_progress.h"
#include "server/rules/check_plan.h"
#include "server/slot_pool.h"

namespace rubato::server {

// Whether StartJob failed because the checkpoint that the job goes on from cannot be read.
bool CannotRestore(const absl::Status& status);

// A server without its sockets: routes messages of workers and directives of the coordinator to its partitions, and
// gathers their answers. Parts of checkpoints are written by a thread of its own. Thread-safe; nothing waits for others
// but StartJob and the destructor.
class ServerCore {
 public:
  struct Options {
    v1::JobConfig config;
    v1::TaskId task;
    // Of what it asks other servers for. May be null.
    std::shared_ptr<const TaskSecurity> security = nullptr;
    Clock* clock = nullptr;
    Logger* log = nullptr;
    // Where tasks on this host meet this server, and the memory that it offers them. Both null: nowhere. The listener
    // outlives the core.
    const SharedMemoryListener* shared = nullptr;
    std::shared_ptr<SharedArena> arena;
    // Null: nobody wants to know what the partitions do. Outlives the core.
    TraceRecorder* trace = nullptr;
    // Told who is refused. May be null; outlives the core.
    RefusalLog* refusals = nullptr;
    // Told the step of each request that is accepted, by whoever brings it. May be empty.
    std::function<void(int64_t step)> on_step = {};
    // Sends an acknowledgement to the coordinator. Called on a partition's thread, or the one that writes checkpoints.
    std::function<void(v1::TaskMessage)> report;
    // Whether the task is about to end: StartJob gives up waiting for other servers.
    std::function<bool()> cancelled = [] { return false; };
    // The disk has lost a part of a checkpoint that cannot be written again: the cut will never be complete while this
    // server goes on. Called on the thread that writes checkpoints. May be empty.
    std::function<void(const absl::Status& status)> on_lost_part = {};
    // A table is full: the job cannot go on. Called on a partition's thread. May be empty.
    std::function<void(const absl::Status& status)> on_failure = {};
  };

  // InvalidArgument: the config's model is not valid.
  static absl::StatusOr<std::unique_ptr<ServerCore>> Create(Options options);
  ~ServerCore();

  // The job's chunks are known: makes this server's partitions, with the values that the job begins with or goes on
  // from. That takes as long as a checkpoint takes to be read; no other method waits for it, and to them the job is
  // there when it returns. Not to be called by two threads at once. Of repetitions only initial_weights_from
  // counts. AlreadyExists: the
  // update log of an earlier run is in the run directory. FailedPrecondition: another job than before, a job without
  // this server, or a part of another cut than job.restore. Errors of CheckpointRestorer: what the job begins with
  // cannot be read.
  absl::Status StartJob(const v1::JobDescription& job);

  // Directives about plans and checkpoints; others are ignored. Before StartJob they change nothing: the coordinator
  // repeats what was not acknowledged.
  void OnDirective(const v1::Directive& directive);

  // A message of a worker or an evaluator. Bad ones are answered REFUSED.
  void OnMessage(std::shared_ptr<Connection> connection, const grpc::ByteBuffer& message);

  // The connection has ended, and no message of it will come any more: its requests that wait are forgotten.
  void OnClosed(uint64_t connection_id);

  // The partitions' last known progress; asks them for newer.
  v1::ServerProgress Progress();

  // How far its part of the last cut is; id 0: there was none.
  v1::CutProgress cut_progress();

  // The plan that it was given last; generation 0 before the first.
  v1::Plan plan();

 private:
  using Partitions = std::vector<std::unique_ptr<PartitionOwner>>;
  // What the partitions have captured of the last cut.
  struct GatheredCut {
    uint64_t id = 0;
    // Partitions that have chunks and have not captured all of them.
    size_t missing = 0;
    std::shared_ptr<Part> part;
  };

  ServerCore(Options options, ModelSpec model);

  // Whether the job was started before. FailedPrecondition: another one was.
  absl::StatusOr<bool> IsStarted(const v1::JobDescription& job);
  // Whether the job begins with weights that a worker assigns.
  bool AwaitsWeights(const v1::JobDescription& job) const;
  void NameAssigner(const v1::JobDescription& job);
  // The partitions, as new. `job` outlives them.
  absl::StatusOr<Partitions> MakePartitions(const v1::JobDescription* job);
  // Gives them what the job goes on from, or begins with, if that is not the seed's; reads each file once.
  absl::Status Restore(const v1::JobDescription& job, const Partitions& partitions, const PartPeers* peers) const;
  absl::Status RestoreCut(const v1::JobDescription& job, CheckpointRestorer* restorer, const PartPeers* peers) const;
  std::unique_ptr<PartWriter> MakeWriter() const;
  // To write the part, and have it copied.
  PendingPart Pending(std::shared_ptr<Part> part) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // On the thread that writes checkpoints.
  absl::StatusOr<int64_t> WritePart(const PartFiles& files, Part& part, const std::function<bool()>& cancelled) const;
  std::shared_ptr<const PartFiles> MakeFiles(const v1::JobDescription& job) const;
  // This server's chunks. FailedPrecondition: the job is not one of this server's config.
  absl::StatusOr<std::vector<std::vector<uint32_t>>> ChunksByPartition(const v1::JobDescription& job) const;
  // Opens the partition's update log, if there is to be one. `job` outlives the owner.
  absl::StatusOr<PartitionOwner::Options> OwnerOptions(const v1::JobDescription* job, uint32_t partition,
                                                       const std::vector<uint32_t>& chunks);
  // Whom the message goes to, and its gradients.
  absl::Status Route(const DecodedRequest& message, PartitionOwner** owner, PartitionOwner::Incoming* incoming);
  void Announce(const std::vector<PartitionOwner*>& partitions, uint64_t generation);
  void Commit(const std::vector<PartitionOwner*>& partitions, const v1::Plan& plan);
  void WriteCheckpoint(const std::vector<PartitionOwner*>& partitions, const std::string& name);
  void KeepCheckpoints(const v1::KeepCheckpoints& keep);
  // The plan has a cut that may be a new one.
  void BeginCut(const v1::Plan& plan);
  // A partition has captured its chunks of the plan's cut.
  void OnCaptured(const v1::Plan& plan, std::vector<ChunkSnapshot> chunks);
  void ReportCheckpoint(const std::string& name, const std::string& error) const;
  std::vector<PartitionOwner*> AllPartitions();

  const Options options_;
  const ModelSpec model_;
  const std::shared_ptr<SlotPool> slots_ = SlotPool::Create();
  // Null: no tables, or nobody to share memory with.
  std::shared_ptr<SharedBlocks> blocks_;
  Mutex mu_;
  // These five are set once by StartJob, and not changed or removed before the destructor.
  std::unique_ptr<const v1::JobDescription> job_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const PartFiles> files_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const PartPeers> peers_ ABSL_GUARDED_BY(mu_);  // Null: nobody keeps copies.
  // Outlives the partitions, which bring it what they have captured.
  std::unique_ptr<PartWriter> writer_ ABSL_GUARDED_BY(mu_);
  Partitions partitions_ ABSL_GUARDED_BY(mu_);
  GatheredCut cut_ ABSL_GUARDED_BY(mu_);
  TakenPlan plan_ ABSL_GUARDED_BY(mu_);
  std::vector<PartitionProgress> progress_ ABSL_GUARDED_BY(mu_);  // By partition.
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_SERVER_CORE_H_
