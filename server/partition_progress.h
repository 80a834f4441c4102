#ifndef RUBATO_SERVER_PARTITION_PROGRESS_H_
#define RUBATO_SERVER_PARTITION_PROGRESS_H_

#include <vector>

#include "proto/coordinator.pb.h"
#include "server/rules/held_start.h"

namespace rubato::server {

// What a partition tells of itself.
struct PartitionProgress {
  v1::ServerProgress counts;  // Without held.
  std::vector<HeldStart> held;
};

// The server's progress: counts are added up, a member's clock is its lowest, and a step that several partitions hold
// for a worker is one entry, with everybody whom any of them waits for. Pure.
v1::ServerProgress SumProgress(const std::vector<PartitionProgress>& partitions);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_PARTITION_PROGRESS_H_
