#ifndef RUBATO_TESTS_SIMULATION_SIM_DATA_H_
#define RUBATO_TESTS_SIMULATION_SIM_DATA_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "proto/coordinator.pb.h"

namespace rubato::simulation {

// A worker's share of the data: leases shards from the coordinator, one ahead of the one in work, and reports those
// whose pushes are all acknowledged. Messages may be lost, repeated and late. Not thread-safe.
class SimData {
 public:
  // Positions [begin, end) of a shard; none if both are equal.
  struct Batch {
    uint64_t shard = 0;
    int64_t begin = 0;
    int64_t end = 0;
  };
  using Send = std::function<void(const v1::ShardRequest&)>;

  explicit SimData(Send send) : send_(std::move(send)) {}

  // Now and then: asks for a shard if one is needed, and again.
  void Ask();
  // Whether the coordinator has said that all is done.
  bool used_up() const { return used_up_; }
  // Whether it is the answer to the open request, with a shard.
  bool OnGrant(const v1::ShardGrant& grant);
  // A step begins: what was taken before is acknowledged.
  void StepBegins();
  // All shards that it holds, with what is acknowledged of each.
  std::vector<v1::ShardPosition> Positions() const;
  // The next examples, at most as many.
  Batch Take(int64_t most);

 private:
  struct Shard {
    uint64_t number = 0;
    int64_t next = 0;
    int64_t end = 0;
  };

  const Send send_;
  std::vector<Shard> held_;      // In order of their grants.
  std::vector<Shard> finished_;  // Not confirmed by an answer yet.
  v1::ShardRequest request_;     // The open one, or the last.
  bool open_ = false;
  bool used_up_ = false;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SIM_DATA_H_
