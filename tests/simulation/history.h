#ifndef RUBATO_TESTS_SIMULATION_HISTORY_H_
#define RUBATO_TESTS_SIMULATION_HISTORY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/parameter_server.pb.h"
#include "proto/update_log.pb.h"
#include "tests/simulation/chunk_oracle.h"
#include "tests/simulation/chunk_state.h"
#include "tests/simulation/reference_update.h"
#include "tests/simulation/verdict.h"

namespace rubato::simulation {

using ChunkStates = std::map<uint32_t, ChunkState>;  // By chunk.

// Judges one line of history, by I1 to I5: the job from its beginning or from the cut that it went back to. It ends
// nowhere: tasks that have not heard of a rollback go on with it. Partitions are numbered over all servers. Not
// thread-safe.
class History {
 public:
  struct Start {
    int64_t first_step = 0;
    ChunkStates restored = {};
    // What was used before.
    uint64_t last_generation = 0;
    std::set<uint64_t> old_members = {};
  };

  History(Start start, Verdict* verdict) : start_(std::move(start)), verdict_(verdict) {}

  void PlanHolds(uint32_t partition, const v1::Plan& plan);
  // A server has the chunk, with what it has restored of it.
  void Restored(uint32_t chunk, const ChunkState& state);
  void Applied(uint32_t partition, uint32_t chunk, const std::vector<v1::UpdateRecord>& contributions);
  // What the update has made of the weights' value, and had to make.
  void Updated(uint32_t chunk, const UpdateOutcome& outcome, const UpdateOutcome& due);
  void Logged(uint32_t partition, const v1::UpdateRecord& record);
  void Asked(uint32_t chunk, const v1::TaskId& worker, uint64_t generation, int64_t step, bool with_push);
  // A request pushes the gradient of so many examples.
  void Pushed(uint32_t chunk, const v1::TaskId& worker, int64_t step, uint64_t examples);
  // A request to begin `step` with these chunks is answered OK.
  void Began(uint32_t partition, const std::vector<uint32_t>& chunks, const v1::TaskId& worker, uint64_t generation,
             int64_t step);
  void HandedOut(uint32_t chunk, int64_t version, std::optional<double> value);
  // A snapshot was taken of the weights that `step` starts with.
  void Captured(uint32_t partition, uint32_t chunk, int64_t step);
  void CutCaptured(uint32_t partition, uint32_t chunk, const v1::Cut& cut, const ChunkState& state);
  // At a worker: a step begins with all of its weights, after `last` (generation, step).
  void StepBegins(const v1::TaskId& worker, std::pair<uint64_t, int64_t> last, std::pair<uint64_t, int64_t> next);
  // All pushes of `step` are acknowledged.
  void StepAcknowledged(const v1::TaskId& worker, int64_t step);
  // After every event.
  void CheckSettled();

  bool Done(uint32_t chunk, const v1::TaskId& worker, int64_t step) { return Chunk(chunk).Done(worker, step); }
  // Whether the push of `step`, which has arrived, waits until the chunk is captured.
  bool HeldForCut(uint32_t partition, uint32_t chunk, const v1::TaskId& worker, int64_t step);
  const ChunkOracle& chunk(uint32_t chunk) { return Chunk(chunk); }
  Rows& RowsOf(uint32_t shard) { return Chunk(shard).rows(); }
  PushCounts& CountsOf(uint32_t shard) { return Chunk(shard).counts(); }
  const KnownPlans& plans(uint32_t partition) { return partitions_[partition]; }

  const Start& start() const { return start_; }
  // The furthest step begun by anybody.
  int64_t highest_begun() const { return highest_begun_; }
  // With its last amendment; generation 0 if no server holds one.
  // Of that generation's plan; 1 if it is not known.
  double LearningRateScale(uint64_t generation) const {
    const auto plan = plans_.find(generation);
    return plan == plans_.end() ? 1 : plan->second.learning_rate_scale();
  }
  v1::Plan newest_plan() const { return plans_.empty() ? v1::Plan() : plans_.rbegin()->second; }
  // Everybody who ever was in one of its plans.
  const std::set<uint64_t>& members() const { return members_; }

 private:
  ChunkOracle& Chunk(uint32_t chunk);
  void CheckFirstPlan(const v1::Plan& plan);
  void CheckNewPlan(const v1::Plan& plan);
  void Violate(const std::string& what) { verdict_->Note(what); }

  const Start start_;
  Verdict* const verdict_;
  std::map<uint32_t, ChunkOracle> chunks_;
  std::map<uint32_t, KnownPlans> partitions_;
  std::map<uint64_t, v1::Plan> plans_;  // By generation.
  std::set<uint64_t> members_;
  int64_t highest_begun_ = -1;
  std::vector<uint32_t> updated_;  // Chunks, since the last event.
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_HISTORY_H_
