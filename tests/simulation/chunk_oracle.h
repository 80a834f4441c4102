#ifndef RUBATO_TESTS_SIMULATION_CHUNK_ORACLE_H_
#define RUBATO_TESTS_SIMULATION_CHUNK_ORACLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "proto/parameter_server.pb.h"
#include "proto/update_log.pb.h"
#include "tests/simulation/chunk_state.h"
#include "tests/simulation/reference_update.h"

namespace rubato::simulation {

bool HasMember(const v1::Plan& plan, const v1::TaskId& worker);

// The plans that a partition goes by, as its update log tells them.
struct KnownPlans {
  v1::Plan current;
  // The plan before, without the members that are lost.
  std::optional<v1::Plan> previous;
};

// What must be true of one chunk, judged from requests, answers and the update log alone; shares no code with the
// rules. Methods return what is violated, empty when nothing is. Not thread-safe.
class ChunkOracle {
 public:
  // `restored`: what the line of history begins with.
  ChunkOracle(uint32_t chunk, ChunkState restored) : chunk_(chunk), state_(std::move(restored)) {}

  // A request to begin `step` has arrived, with a push of the step before or, as a pull, without one.
  void Asked(const v1::TaskId& worker, uint64_t generation, int64_t step, bool with_push);
  // It pushes the gradient of so many examples.
  void Pushed(const v1::TaskId& worker, int64_t step, uint64_t examples) {
    std::pair<int64_t, uint64_t>& last = workers_[worker.incarnation()].pushed;
    if (step >= last.first) last = {step, examples};  // An old one may come again.
  }
  // A request to begin `step` was answered OK.
  std::string Began(const KnownPlans& plans, const v1::TaskId& worker, uint64_t generation, int64_t step);
  // An update was applied to the weights; its records follow.
  std::string Applied(const KnownPlans& plans, const std::vector<v1::UpdateRecord>& contributions);
  // What the update has made of the weights' value, and had to make.
  std::string Updated(const UpdateOutcome& outcome, const UpdateOutcome& due);
  std::string Logged(const KnownPlans& plans, const v1::UpdateRecord& record);
  // A snapshot was taken of the weights that `step` starts with.
  std::string Captured(const KnownPlans& plans, int64_t step);
  // This state was captured for `cut`.
  std::string CutCaptured(const KnownPlans& plans, const v1::Cut& cut, const ChunkState& state);
  // The weights were handed out with this version, and this value if it is known.
  std::string HandedOut(int64_t version, std::optional<double> value) const;

  // Whether the chunk is captured for the plan's cut, or the plan has none.
  bool HasCut(const v1::Plan& plan) const { return !plan.has_cut() || plan.cut().id() <= cut_.id(); }
  // What the chunk has become.
  const ChunkState& state() const { return state_; }
  // Of a shard: who knows what its updates have to make of its rows and counts writes it here.
  Rows& rows() { return state_.rows; }
  PushCounts& counts() { return state_.counts; }
  // The pushes that are done since the line of history began, whether they changed anything or not.
  const absl::flat_hash_set<PushId>& done() const { return done_; }
  // Whether this push is in the update log.
  bool Done(const v1::TaskId& worker, int64_t step) const { return done_.contains({worker.incarnation(), step}); }
  // Records that must still follow.
  bool settled() const { return expected_.empty(); }

 private:
  using Point = std::pair<uint64_t, int64_t>;  // Generation and step.
  struct Worker {
    Point asked = {0, -1};
    Point pulled = {0, -1};
    Point begun = {0, -1};
    bool open = false;  // The push of the step begun is not in the log.
    Point done = {0, -1};
    std::pair<int64_t, uint64_t> pushed = {-1, 0};  // The furthest that came: step and examples.
  };

  Worker Of(const v1::TaskId& worker) const;
  int64_t Clock(const KnownPlans& plans, const v1::Plan& plan, const v1::TaskId& worker) const;
  int64_t ClockOnEntry(const KnownPlans& plans, const v1::TaskId& worker) const;
  // Whether a quorum's step can do without this member for good.
  bool MovedPast(const KnownPlans& plans, const v1::Plan& plan, const v1::TaskId& worker, int64_t step) const;
  std::string CheckGate(const KnownPlans& plans, const v1::Plan& plan, int64_t step) const;
  std::string CheckQuorumGate(const KnownPlans& plans, const v1::Plan& plan, int64_t step) const;
  std::string CheckStartVersion(int64_t step);
  // A cut has all steps under its first and none from it on.
  std::string CheckCutContent(const KnownPlans& plans, const std::string& what) const;
  std::string CheckSyncUpdate(const KnownPlans& plans, const v1::Plan& plan,
                              const std::vector<v1::UpdateRecord>& contributions);

  const uint32_t chunk_;
  ChunkState state_;
  absl::flat_hash_map<uint64_t, Worker> workers_;  // By incarnation.
  absl::flat_hash_set<PushId> done_;
  absl::flat_hash_set<PushId> expected_;
  // The last cut that it was captured for, and the first step that is not in it.
  v1::Cut cut_;
  int64_t cut_step_ = 0;
  std::map<uint64_t, int64_t> next_sync_step_;  // By generation.
  std::map<int64_t, int64_t> start_versions_;   // By SYNC step without a quorum.
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_CHUNK_ORACLE_H_
