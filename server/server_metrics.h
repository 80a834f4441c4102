#ifndef RUBATO_SERVER_SERVER_METRICS_H_
#define RUBATO_SERVER_SERVER_METRICS_H_

#include "common/metrics/metric_text.h"
#include "proto/coordinator.pb.h"

namespace rubato::server {

// Adds what a server measures to its page of metrics. `plan`: the one that it holds, generation 0 for none. Pure.
void AddServerMetrics(const v1::ServerProgress& progress, const v1::Plan& plan, MetricText* text);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_SERVER_METRICS_H_
