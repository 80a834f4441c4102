#ifndef RUBATO_WORKER_PS_CLIENT_CUT_PART_H_
#define RUBATO_WORKER_PS_CLIENT_CUT_PART_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/log.h"
#include "common/part_copies/part_peers.h"
#include "proto/checkpoint.pb.h"
#include "proto/job_config.pb.h"
#include "worker/ps_client/worker_part.h"

namespace rubato::worker {

// Where a worker's part of the cut that a job goes on from is found.
struct CutPartSource {
  // All outlive the call.
  const v1::JobConfig* config = nullptr;
  const v1::Cut* cut = nullptr;
  uint32_t index = 0;
  // Servers that keep copies of parts, for one that is not on this machine. Null: nobody does.
  std::shared_ptr<const PartPeers> peers;
  // Whether it is not needed any more.
  std::function<bool()> cancelled;
  Logger* log = nullptr;
};

// Fills `part`, which has room, as ReadWorkerPart does. False: there is none. Errors of CheckCutName, ReadWorkerPart
// and PartPeers::Fetch.
absl::StatusOr<bool> ReadCutPart(const CutPartSource& source, WorkerPart* part);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_CUT_PART_H_
