#ifndef RUBATO_SERVER_PARTITION_OWNER_H_
#define RUBATO_SERVER_PARTITION_OWNER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/model_spec.h"
#include "common/shared_memory/arena.h"
#include "common/shared_memory/blocks.h"
#include "common/storage/checkpoint_restorer.h"
#include "common/storage/update_log.h"
#include "common/trace/trace_recorder.h"
#include "common/transport/exchange_server.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "server/chunk_snapshot.h"
#include "server/chunk_store.h"
#include "server/held_answers.h"
#include "server/partition_progress.h"
#include "server/partition_trace.h"
#include "server/rules/assignment.h"
#include "server/rules/partition.h"
#include "server/serving_thread.h"
#include "server/slot_pool.h"
#include "server/table_message.h"
#include "server/table_store.h"
#include "server/weight_leases.h"
#include "server/work_queue.h"

namespace rubato::server {

// One partition: rules, weights and update log, touched by one thread at a time, so the path from a push to the weights
// takes no lock but the queue's. What is asked for waits for the partition's thread, where callbacks run, too. But some
// requests to an idle partition are served by the thread that submits them (ServingThread). Public methods are
// thread-safe, and only such a Submit does not return at once.
class PartitionOwner : private PartitionSink {
 public:
  struct Options {
    uint32_t partition = 0;
    // What the job consists of; both outlive the owner.
    const v1::JobConfig* config = nullptr;
    const ModelSpec* model = nullptr;
    const v1::JobDescription* job = nullptr;
    std::vector<uint32_t> chunks;
    // Of those chunks that are shards of tables; not null.
    std::unique_ptr<TableStore> tables;
    // How long a request waits before it is answered WAITING.
    absl::Duration timeout = absl::Seconds(2);
    const Clock* clock = nullptr;
    Logger* logger = nullptr;
    // The chunks begin with what a worker assigns. Before that no snapshot is taken of them.
    bool awaits_weights = false;
    // Null: no update log.
    std::unique_ptr<UpdateLogWriter> log;
    // Holds the weights as long as there is room, so that tasks on this host can read them there. Null: there is none.
    std::shared_ptr<SharedArena> arena;
    // Rows of answers are put there as long as there is room. Null: there is none.
    std::shared_ptr<SharedBlocks> blocks;
    // Of all partitions.
    std::shared_ptr<SlotPool> slots = SlotPool::Create();
    // Null: nobody wants to know.
    TraceRecorder* trace = nullptr;
    // Called by whoever is at work.
    WeightLeases::SessionLives session_lives;
    // All chunks of the plan's cut have been captured; called by whoever is at work. Not called if there are none.
    std::function<void(const v1::Plan& plan, std::vector<ChunkSnapshot> chunks)> on_cut;
    // An update could not be applied, as a table is full: the server has to end. Called by whoever is at work.
    std::function<void(const absl::Status& status)> on_failure;
  };

  // A request's chunks are all in this partition (ReadRequest).
  struct Incoming {
    std::shared_ptr<Connection> connection;
    uint64_t request_id = 0;
    // Of the message, which is released on the connection with the answer.
    size_t message_bytes = 0;
    PartitionRequest request;
    // Of the request's gradients, which are in the worker's memory or in the message.
    uint64_t gradient_bytes = 0;
    bool in_shared_memory = false;
    // The worker can read the arena; 0: it cannot.
    uint64_t shared_session = 0;
    // For the trace; InfinitePast if nothing is recorded.
    absl::Time arrived = absl::InfinitePast();
    // It assigns weights, and is no request of the rules.
    bool assigns = false;
    // As in ReceivedRequest.
    uint32_t slot = 0;
    std::vector<int64_t> updates;
    std::shared_ptr<const TableMessage> table;
  };

  explicit PartitionOwner(Options options);
  // As ChunkStore's, of all chunks; before anything else is called.
  size_t BeginRestore(CheckpointRestorer* restorer) {
    options_.tables->BeginRestore(restorer);
    return store_.BeginRestore(tensors_, restorer);
  }
  // `versions`: chunks go on from their versions, too.
  void FinishRestore(const CheckpointRestorer& restorer, size_t first, bool versions);
  // Answers nothing more and flushes the log.
  ~PartitionOwner() override;

  bool has_chunks() const { return !options_.chunks.empty(); }
  void Submit(Incoming incoming);
  // The connection is gone, and with it its requests that are not answered. What they brought has been taken, and a
  // worker that connects again asks again.
  void OnClosed(uint64_t connection_id);
  // Whom the job's description names as the one that assigns weights.
  void NameAssigner(v1::TaskId worker);
  void Announce(uint64_t generation, std::function<void(int64_t highest_begun)> done);
  void Abort(uint64_t generation);
  void Commit(v1::Plan plan, std::function<void(std::vector<v1::LostWorker> lost)> done);
  // The chunks as they are, for a checkpoint; as soon as they have their initial weights.
  void Snapshot(std::function<void(std::vector<ChunkSnapshot>)> done);
  void Describe(std::function<void(PartitionProgress)> done);

 private:
  // The weights of a chunk, or one of its slots.
  struct Captured {
    FloatBuffer::Ptr buffer;
    int64_t version = 0;
    int64_t updates = 0;
  };
  struct Open {
    std::shared_ptr<Connection> connection;
    uint64_t request_id;
    size_t message_bytes;
    // Whose request it is.
    v1::TaskId task;
    std::vector<uint32_t> chunks;
    uint64_t shared_session;
    PartitionTrace::Request traced;
    absl::Time since;
    // Snapshot: the slot that is asked for, counted from 1, or 0; and what was captured, in order of capture.
    uint32_t slot;
    absl::flat_hash_map<uint32_t, Captured> captured;
    // What it asks of a table. Null: it is about tensors.
    std::shared_ptr<const TableMessage> table;
  };

  // For the thread, which first sends what is held.
  void Post(std::function<void()> work);
  void Handle(Incoming incoming);
  void HandleAssign(const Incoming& incoming);
  std::vector<ChunkSnapshot> KeepAll();
  // Members have pushed with different hyperparameters to the chunk.
  void NoteDisagreement(uint32_t chunk);
  ChunkSnapshot Keep(uint32_t chunk);
  // Applies what tables have taken of updates; whoever calls the rules does so before anything else is done.
  void FinishTables();
  // What a table said of an update.
  void CheckTables(const absl::Status& status);
  void CountAnswer(const PartitionReply& reply, const Open& open, bool waited);
  // Which versions the step begins with, in the update log.
  void LogServed(const PartitionReply& reply, const v1::TaskId& task);
  // Whether the answer waits for pushes to the same chunks that are here already.
  bool IsToBeHeld(const PartitionReply& reply) const;
  void AnswerNow(const PartitionReply& reply, bool waited);
  // What was held.
  void AnswerNow(const std::vector<PartitionReply>& replies);
  // Appends the weights to `header` and `payload`.
  void AddWeights(const PartitionReply& reply, const Open& open, v1::ExchangeReply* header,
                  std::vector<grpc::Slice>* payload);
  // The same of rows.
  void AddRows(const PartitionReply& reply, const Open& open, v1::ExchangeReply* header,
               std::vector<grpc::Slice>* payload);
  // Puts them into shared memory instead; false when they are not all there.
  bool Share(const std::vector<ChunkStore::Wire>& weights, const Open& open, v1::ExchangeReply* header);
  // The first failure of the update log is told; training goes on.
  void CheckLog(const absl::Status& status);

  bool IsFinite(uint32_t chunk, const Contribution& contribution) override;
  void Apply(const ChunkRules::Update& update) override;
  bool logs() const override { return options_.log != nullptr; }
  std::optional<uint32_t> GradientCrc(const Contribution& contribution) override;
  void Answer(const PartitionReply& reply) override;
  void Capture(uint64_t token, uint32_t chunk) override;
  void CaptureCut(const v1::Cut& cut, uint32_t chunk) override;
  void Log(const v1::UpdateLogRecord& record) override;

  const Options options_;
  // Chunks of tensors.
  const std::vector<uint32_t> tensors_;
  // Used by whoever is at work.
  ChunkStore store_;
  Partition partition_;
  Assignment assignment_;
  // Asked for before everything was assigned.
  std::vector<std::function<void(std::vector<ChunkSnapshot>)>> snapshots_;
  absl::flat_hash_map<uint64_t, Open> open_;
  WeightLeases leases_;
  // The last cut of which something was captured, and what was, until all of it is.
  uint64_t cut_ = 0;
  std::vector<ChunkSnapshot> captured_;
  uint64_t last_token_ = 0;
  v1::ServerProgress counts_;
  PartitionTrace trace_;
  // The request that is being taken; 0: none. Its answer has not waited.
  uint64_t handled_token_ = 0;
  HeldAnswers held_;
  // The answer that is made: kept, as memory of its entries is used again.
  v1::ExchangeReply reply_header_;
  bool log_failed_ = false;
  bool failed_ = false;
  bool told_disagreement_ = false;
  ServingThread serving_thread_;
  WorkQueue queue_;  // Last: its thread uses everything above.
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_PARTITION_OWNER_H_
