#ifndef RUBATO_SERVER_RULES_HELD_START_H_
#define RUBATO_SERVER_RULES_HELD_START_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/parameter_server.pb.h"

namespace rubato::server {

// A worker's step that may not begin yet.
struct HeldStart {
  uint32_t worker = 0;
  int64_t step = 0;
  std::vector<v1::TaskId> waiting_for;
  // For a plan change to be committed or aborted.
  bool waits_for_coordinator = false;
};

// So many are named where a wait is described.
inline constexpr size_t kMostNamed = 16;

// For people: "worker 1, worker 2", and "others" if there are more than kMostNamed. A wait for nobody is one for the
// coordinator.
std::string DescribeWait(const std::vector<v1::TaskId>& tasks, bool for_coordinator);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_HELD_START_H_
