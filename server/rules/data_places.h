#ifndef RUBATO_SERVER_RULES_DATA_PLACES_H_
#define RUBATO_SERVER_RULES_DATA_PLACES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato::server {

// How far in their shards the workers have come with what was applied here, to be told of those who are lost: what they
// have not trained is for others (DYNAMIC dispatch). A step counts as soon as it is done on one chunk, so that none of
// its examples is trained twice. Pure; not thread-safe; owned by a Partition.
class DataPlaces {
 public:
  // A push is done on some chunk. `slice` is its batch; without a shard: it has none, and the worker is where it was.
  void Note(const v1::TaskId& worker, int64_t step, const v1::ShardSlice& slice);

  // A plan or an amendment holds from here on. `entered`: it is a new plan. A worker that is no member any more is kept
  // for this plan and the next one: nobody decides on a third before this server has said that it holds the second.
  void OnPlan(const v1::Plan& plan, bool entered);

  // Those who are no members any more.
  std::vector<v1::LostWorker> Lost() const;

  // For tests that visit all states: appends all that what comes later depends on.
  void AppendState(std::string* state) const;

 private:
  struct Place {
    v1::LostWorker reached;
    // Since it is no member any more.
    bool lost = false;
    int plans_entered = 0;
  };

  std::map<uint64_t, Place> places_;  // By incarnation.
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_DATA_PLACES_H_
