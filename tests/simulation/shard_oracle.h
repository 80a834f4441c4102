#ifndef RUBATO_TESTS_SIMULATION_SHARD_ORACLE_H_
#define RUBATO_TESTS_SIMULATION_SHARD_ORACLE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "proto/checkpoint.pb.h"
#include "proto/parameter_server.pb.h"
#include "tests/simulation/verdict.h"

namespace rubato::simulation {

// Judges by I7 which examples a line of history trains: each once, those in the cut that it goes on from not again, and
// that a cut's record says exactly which those are. What a lost worker has trained of a shard that it did not finish is
// trained again, by design. Not thread-safe.
class ShardOracle {
 public:
  // A step's batch: positions [begin, end) of a shard.
  struct Batch {
    v1::TaskId worker;
    int64_t step = 0;
    uint64_t shard = 0;
    int64_t begin = 0;
    int64_t end = 0;
  };

  // `restored`: of the cut that it goes on from. `shard_examples`: positions in shard n begin at (n - 1) times that.
  ShardOracle(const v1::ShardState& restored, int64_t shard_examples, Verdict* verdict);

  // A worker begins a step with these examples. `plan`: the newest one.
  void Trained(const Batch& batch, const v1::Plan& plan);
  // The coordinator has lost what it knew of the shard with the power, and gives it out again: who trains it how often
  // does not matter any more.
  void Forget(uint64_t shard) { forgotten_.insert(shard); }
  // A cut is complete, and the members of this plan are not lost.
  void Recorded(const v1::CutRecord& record, const v1::Plan& members);
  // Whether a part of the shard was trained before.
  bool Begun(uint64_t shard) const;

 private:
  // The first position that the state does not have.
  int64_t NextIn(const v1::ShardState& state, uint64_t shard) const;
  int64_t BeginOf(uint64_t shard) const { return static_cast<int64_t>(shard - 1) * shard_examples_; }
  std::string CheckClaim(const v1::CutRecord& record, const v1::Plan& members, uint64_t shard, int64_t claimed) const;

  const v1::ShardState restored_;
  const int64_t shard_examples_;
  Verdict* const verdict_;
  std::map<uint64_t, std::vector<Batch>> batches_;  // By shard.
  std::set<uint64_t> forgotten_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SHARD_ORACLE_H_
