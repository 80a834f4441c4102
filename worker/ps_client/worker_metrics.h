#ifndef RUBATO_WORKER_PS_CLIENT_WORKER_METRICS_H_
#define RUBATO_WORKER_PS_CLIENT_WORKER_METRICS_H_

#include "common/metrics/metric_text.h"
#include "proto/coordinator.pb.h"

namespace rubato::worker {

// Adds what a worker measures to its page of metrics. `plan`: the newest that it was told, generation 0 for none. Pure.
void AddWorkerMetrics(const v1::WorkerProgress& progress, const v1::Plan& plan, MetricText* text);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_WORKER_METRICS_H_
