#ifndef RUBATO_WORKER_PS_CLIENT_TRAFFIC_PROGRESS_H_
#define RUBATO_WORKER_PS_CLIENT_TRAFFIC_PROGRESS_H_

#include <string>

#include "common/network_link/link_relay.h"
#include "common/straggler/straggler_model.h"
#include "proto/coordinator.pb.h"
#include "worker/ps_client/ps_client.h"

namespace rubato::worker {

// Adds to a worker's progress what its client of the servers has counted: messages, bytes, waits, staleness, and pushes
// that were not finite, to those that are in there. Pure.
void AddTraffic(const PsClient::Counters& counters, v1::WorkerProgress* progress);

// "x3 behind latency=10ms": how a worker is slowed down, in its steps and by the link, which may be null. Empty: not.
std::string DescribeSlowed(const StragglerModel& slow, const LinkRelay* link);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_TRAFFIC_PROGRESS_H_
