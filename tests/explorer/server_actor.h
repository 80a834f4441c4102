#ifndef RUBATO_TESTS_EXPLORER_SERVER_ACTOR_H_
#define RUBATO_TESTS_EXPLORER_SERVER_ACTOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/rules/partition.h"
#include "tests/explorer/model.h"
#include "tests/explorer/task_link.h"
#include "tests/simulation/chunk_state.h"

namespace rubato::explorer {

// A worker's stream to a server; its next one has the next number.
struct Stream {
  v1::TaskId task;
  uint32_t server = 0;
  uint64_t number = 0;

  // Of what is in flight on it.
  uint64_t Tag() const { return FingerprintOf("stream", task.incarnation(), uint64_t{server}, number); }
};

// What a worker sends on a stream. The answer goes back to its step machine's request `id`.
struct DataRequest {
  Stream stream;
  uint64_t id = 0;
  server::PartitionRequest request;
};

// A server's process: the real rules of its partitions, each with a thread of its own that gets plans and requests, and
// its parts of checkpoints. Weights are the list of pushes that were applied to them. Not thread-safe.
class ServerActor {
 public:
  // `model` must outlive it.
  // `term`: the highest that the process before it had heard of.
  ServerActor(Model* model, uint32_t index, uint64_t term);
  ~ServerActor();

  // The coordinator speaks of plans: for each partition.
  void ReceivePlan(const v1::Directive& directive);
  // A request to a partition is in flight.
  void ReceiveRequest(uint32_t partition, DataRequest request);
  // The stream has ended: each partition learns of it in time, and may get more of it before.
  void EndStream(const Stream& stream);

  // From now on requests may time out, and it may die, if the scope has that.
  void OfferFaults();

  const v1::TaskId& task() const { return link_.task(); }
  bool alive() const { return alive_; }
  // Whether it has its chunks, and of which job.
  bool works() const { return !partitions_.empty(); }
  uint64_t job() const { return job_; }

  // Appends all that what comes later depends on, and what the oracle knows.
  void AppendState(std::string* state) const;
  // The steps that wait.
  std::vector<server::HeldStart> HeldStarts() const;
  // Whom its requests wait for, for people; empty when there are none.
  std::string Describe() const;

 private:
  class PartitionActor;
  // How many partitions have done something, and what they have found.
  struct Joint {
    size_t missing = 0;
    int64_t highest = -1;
  };

  void OfferTimeouts();
  void Die();
  // The process ends, and with it what is in flight to it.
  void End();
  std::vector<uint64_t> Threads() const;
  // What it says on the next session, and what does not come any more that the coordinator has said on the last one.
  void OnNewSession();
  void OnDirective(const v1::Directive& directive);
  // The request of this event has come; it may come once more.
  void OfferRepeat(uint32_t partition, Schedule::Event event, const DataRequest& request);
  void StartJob(const v1::JobDescription& job);
  void BeginCut(const v1::Cut& cut);
  void OnCaptured(const v1::Cut& cut, uint32_t chunk, const simulation::ChunkState& state);
  void WritePart();
  void ReportPart();
  uint64_t TagOfPlan(uint64_t number) const { return FingerprintOf("plan", task().incarnation(), number); }
  uint64_t ActorOf(uint32_t partition) const {
    return IdOf(Actor::kPartition, index_ * model_->scope.partitions + partition);
  }
  void OnPlan(PartitionActor& partition, const v1::Directive& directive, uint64_t number);

  Model* const model_;
  const uint32_t index_;
  TaskLink link_;
  bool alive_ = true;
  uint64_t job_ = 0;  // Its fingerprint.
  std::vector<std::unique_ptr<PartitionActor>> partitions_;
  std::vector<uint32_t> servers_;  // Of the job.
  size_t chunks_ = 0;              // In all partitions.
  v1::Cut cut_;
  std::map<uint32_t, simulation::ChunkState> captured_;
  uint64_t written_ = 0;              // Id of the cut of which its part is on the disk.
  std::map<uint64_t, Joint> joints_;  // By the number of what the coordinator said.
  uint64_t last_joint_ = 0;
};

}  // namespace rubato::explorer

#endif  // RUBATO_TESTS_EXPLORER_SERVER_ACTOR_H_
