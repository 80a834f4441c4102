#ifndef RUBATO_COMMON_METRICS_PLAN_METRICS_H_
#define RUBATO_COMMON_METRICS_PLAN_METRICS_H_

#include "common/metrics/metric_text.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// Adds what every task tells of the plan that it knows; nothing for generation 0. Pure.
void AddPlanMetrics(const v1::Plan& plan, MetricText* text);

}  // namespace rubato

#endif  // RUBATO_COMMON_METRICS_PLAN_METRICS_H_
