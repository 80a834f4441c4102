#ifndef RUBATO_TESTS_SIMULATION_ORACLE_H_
#define RUBATO_TESTS_SIMULATION_ORACLE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "tests/simulation/chunk_oracle.h"

namespace rubato::simulation {

// Judges a run by the invariants I1 to I5 (docs/architecture.md) from what crosses the interfaces: requests, answers,
// updates, log records, plans. Shares no code with the rules. Keeps the first violation. Not thread-safe.
class Oracle {
 public:
  struct Request {
    uint32_t partition = 0;
    bool snapshot = false;
    bool push = false;
    v1::TaskId task;
    uint64_t generation = 0;
    // To begin; the push is of the step before. Snapshot: the step that starts with the weights, or -1.
    int64_t step = 0;
    std::vector<uint32_t> chunks;
    // By when it must be answered.
    absl::Time deadline;
  };

  // At a server; partitions are numbered over all servers, tokens are unique.
  void PlanHolds(uint32_t partition, const v1::Plan& plan);
  void Applied(uint32_t partition, uint32_t chunk, const std::vector<v1::UpdateRecord>& contributions);
  void Logged(uint32_t partition, const v1::UpdateRecord& record);
  void Arrived(uint64_t token, Request request);
  void Captured(uint64_t token, uint32_t chunk);
  void Answered(uint64_t token, const v1::ExchangeReply& reply);
  // The request's stream broke: no answer is due.
  void Forgotten(uint64_t token);

  // At a worker: a step begins with all of its weights, after `last` (generation, step).
  void StepBegins(const v1::TaskId& worker, std::pair<uint64_t, int64_t> last, std::pair<uint64_t, int64_t> next);
  // All pushes of `step` are acknowledged.
  void StepAcknowledged(const v1::TaskId& worker, int64_t step);
  // A worker's open request was refused.
  void Refused(const v1::TaskId& worker, bool push, const std::string& message);

  // After every event.
  void CheckTime(absl::Time now);
  void Violate(const std::string& what);
  // Empty when there is none.
  const std::string& violation() const { return violation_; }
  // The furthest step begun by anybody, and the newest plan.
  int64_t highest_begun() const { return highest_begun_; }
  v1::Plan newest_plan() const { return plans_.empty() ? v1::Plan() : plans_.rbegin()->second; }

 private:
  ChunkOracle& Chunk(uint32_t chunk) { return chunks_.try_emplace(chunk, chunk).first->second; }
  void Note(const std::string& wrong) {
    if (!wrong.empty()) Violate(wrong);
  }
  void CheckNewPlan(const v1::Plan& plan);
  void Began(const Request& request);

  std::string violation_;
  std::map<uint32_t, ChunkOracle> chunks_;
  std::map<uint32_t, KnownPlans> partitions_;
  std::map<uint64_t, v1::Plan> plans_;  // By generation, as they were first seen.
  int64_t highest_begun_ = -1;
  absl::flat_hash_map<uint64_t, Request> open_;  // By token.
  std::set<std::pair<absl::Time, uint64_t>> deadlines_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_ORACLE_H_
