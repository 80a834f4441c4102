#ifndef RUBATO_WORKER_PS_CLIENT_SERVER_PLACES_H_
#define RUBATO_WORKER_PS_CLIENT_SERVER_PLACES_H_

#include "absl/status/status.h"
#include "proto/coordinator.pb.h"

namespace rubato::worker {

// Makes every chunk's `server`, which the coordinator gives as the task's index, the place of that server in
// job->servers(): indices have gaps when a server was lost and others hold its chunks. FailedPrecondition: a chunk is
// on a server that is not in the job.
absl::Status NameServersByPlace(v1::JobDescription* job);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_SERVER_PLACES_H_
