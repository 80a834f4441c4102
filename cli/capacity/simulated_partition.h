#ifndef RUBATO_CLI_CAPACITY_SIMULATED_PARTITION_H_
#define RUBATO_CLI_CAPACITY_SIMULATED_PARTITION_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "cli/capacity/event_queue.h"
#include "cli/capacity/simulated_cluster.h"
#include "server/rules/partition.h"

namespace rubato::capacity {

// A server's partition: production's rules, and a thread that serves one request after another and takes as long for it
// as the costs say. Rules decide when a request's turn begins; answers leave as the thread comes to them. Requests are
// told of as events: their slot. Not thread-safe.
class SimulatedPartition : public EventTarget, private server::PartitionSink {
 public:
  // `chunks`: their indices, at least one. The cluster outlives it. The plan is in force when it returns.
  SimulatedPartition(SimulatedCluster* cluster, uint32_t server, const std::vector<uint32_t>& chunks);

  // The request in this slot has come, or one of the events below.
  void OnEvent(uint64_t what) override;

  // Of its thread.
  SimTime busy() const { return busy_; }
  uint32_t server() const { return server_; }
  // Of its first chunk: updates, and the contributions in them.
  int64_t updates() const { return updates_; }
  int64_t contributions() const { return contributions_; }

 private:
  struct Answered {
    uint64_t slot;
    SimTime after;  // The thread has begun.
  };

  void Begin();
  server::PartitionRequest RequestOf(uint64_t slot) const;
  void SendAnswer(uint64_t slot);

  bool IsFinite(uint32_t, const server::Contribution&) override { return true; }
  void Apply(const server::ChunkRules::Update& update) override;
  void Answer(const server::PartitionReply& reply) override;
  void Capture(uint64_t, uint32_t) override {}
  void CaptureCut(const v1::Cut&, uint32_t) override {}
  void Log(const v1::UpdateLogRecord&) override {}

  SimulatedCluster& cluster_;
  const uint32_t server_;
  const uint32_t first_chunk_;
  server::Partition rules_;
  std::deque<uint64_t> waiting_;
  bool at_work_ = false;
  // Of the request at work: what the thread has spent so far, and what it has answered.
  uint64_t slot_ = 0;
  SimTime spent_ = 0;
  std::vector<Answered> answered_;
  SimTime busy_ = 0;
  int64_t updates_ = 0;
  int64_t contributions_ = 0;
};

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_SIMULATED_PARTITION_H_
