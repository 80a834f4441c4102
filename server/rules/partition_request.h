#ifndef RUBATO_SERVER_RULES_PARTITION_REQUEST_H_
#define RUBATO_SERVER_RULES_PARTITION_REQUEST_H_

#include <cstdint>
#include <vector>

#include "proto/parameter_server.pb.h"
#include "server/rules/sync_reducer.h"

namespace rubato::server {

// A decoded ExchangeRequest to one partition.
struct PartitionRequest {
  enum class Kind { kPull, kPushPull, kSnapshot };

  // Chosen by the caller, unique among open requests; comes back with the answer.
  uint64_t token = 0;
  Kind kind = Kind::kPull;
  v1::TaskId task;
  uint64_t generation = 0;
  // kPull: the step to begin. kPushPull: the step that is pushed. kSnapshot: at_step.
  int64_t step = 0;
  std::vector<uint32_t> chunks;
  // kPushPull: one per chunk.
  std::vector<Contribution> contributions;

  // The step that a kPull or kPushPull asks to begin.
  int64_t StepToBegin() const { return kind == Kind::kPull ? step : step + 1; }
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_PARTITION_REQUEST_H_
