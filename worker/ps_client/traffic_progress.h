#ifndef RUBATO_WORKER_PS_CLIENT_TRAFFIC_PROGRESS_H_
#define RUBATO_WORKER_PS_CLIENT_TRAFFIC_PROGRESS_H_

#include "proto/coordinator.pb.h"
#include "worker/ps_client/ps_client.h"

namespace rubato::worker {

// Adds to a worker's progress what its client of the servers has counted: messages, bytes, waits, staleness, and pushes
// that were not finite, to those that are in there. Pure.
void AddTraffic(const PsClient::Counters& counters, v1::WorkerProgress* progress);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_TRAFFIC_PROGRESS_H_
