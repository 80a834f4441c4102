#ifndef RUBATO_SERVER_RULES_CUT_CAPTURE_H_
#define RUBATO_SERVER_RULES_CUT_CAPTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "proto/parameter_server.pb.h"

namespace rubato::server {

// Which chunks of a partition the cut of the plan in force still lacks, and which pushes have to wait for them. Pure;
// not thread-safe; owned by a Partition.
//
// A chunk is captured when all pushes of steps before the plan's first one are done on it. Until then a push under the
// plan that carries the cut may not be applied to it, so that the cut has all pushes of the steps before and none of
// the others (I7).
class CutCapture {
 public:
  // `plan` was entered. Its cut, if it has one, begins. What the cut before lacks it will never have: that cut is given
  // up.
  void EnterPlan(const v1::Plan& plan, const std::vector<uint32_t>& chunks);

  // Whether there is a cut that lacks chunks.
  bool open() const { return !missing_.empty(); }
  bool Lacks(uint32_t chunk) const { return missing_.contains(chunk); }
  // The chunk was captured.
  void Take(uint32_t chunk) { missing_.erase(chunk); }
  // Whether a push under plan `generation` has to wait: one of its chunks was not captured yet.
  bool Holds(uint64_t generation, const std::vector<uint32_t>& chunks) const;

  // Of the plan in force; id 0 when that has none.
  const v1::Cut& cut() const { return cut_; }

  // For tests that visit all states: appends all that what comes later depends on.
  void AppendState(std::string* state) const;

 private:
  uint64_t generation_ = 0;
  v1::Cut cut_;
  absl::flat_hash_set<uint32_t> missing_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_CUT_CAPTURE_H_
