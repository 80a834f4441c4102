#ifndef RUBATO_TESTS_SIMULATION_SHARD_ORACLE_H_
#define RUBATO_TESTS_SIMULATION_SHARD_ORACLE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "proto/checkpoint.pb.h"
#include "proto/update_log.pb.h"
#include "tests/simulation/verdict.h"

namespace rubato::simulation {

// How many examples a job's data has, and each of its shards; the last one may have fewer. Shard n begins at position
// (n - 1) * of_shard.
struct DataSize {
  int64_t examples = 0;
  int64_t of_shard = 0;
};

// Judges by I7 and I8 which examples a line of history trains: each once, those in the cut that it goes on from not
// again, and that a cut's record says exactly which those are. A step's batch is trained as soon as it is done on one
// chunk. Not thread-safe.
class ShardOracle {
 public:
  // `restored`: of the cut that it goes on from.
  ShardOracle(const v1::ShardState& restored, const DataSize& data, Verdict* verdict);

  // A push to some chunk is done.
  void Trained(const v1::UpdateRecord& push);
  // The coordinator has lost what it knew of the shard with the power, and gives it out again: who trains it how often
  // does not matter any more.
  void Forget(uint64_t shard) { forgotten_.insert(shard); }
  // A cut is complete.
  void Recorded(const v1::CutRecord& record);
  // The job is done: each example must be trained.
  void Done() const;
  // The shard's first example that was not trained before.
  int64_t Restored(uint64_t shard) const { return NextIn(restored_, shard); }
  int64_t BeginOf(uint64_t shard) const { return static_cast<int64_t>(shard - 1) * data_.of_shard; }
  int64_t EndOf(uint64_t shard) const { return std::min(BeginOf(shard) + data_.of_shard, data_.examples); }

 private:
  // A step's batch: positions [begin, end) of a shard.
  struct Batch {
    uint64_t incarnation = 0;
    int64_t step = 0;
    int64_t begin = 0;
    int64_t end = 0;
  };

  static std::string Text(uint64_t shard, const Batch& batch);
  // The first position that the state does not have.
  int64_t NextIn(const v1::ShardState& state, uint64_t shard) const;
  // Up to which example the batches of steps before this one have trained the shard without a gap.
  int64_t TrainedBefore(int64_t step, uint64_t shard) const;
  std::string CheckClaim(const v1::CutRecord& record, uint64_t shard, int64_t claimed) const;

  const v1::ShardState restored_;
  const DataSize data_;
  Verdict* const verdict_;
  std::map<uint64_t, std::vector<Batch>> batches_;  // By shard.
  std::set<uint64_t> forgotten_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SHARD_ORACLE_H_
