#ifndef RUBATO_COMMON_METRICS_PROCESS_METRICS_H_
#define RUBATO_COMMON_METRICS_PROCESS_METRICS_H_

#include "common/metrics/metric_text.h"

namespace rubato {

// Adds what Prometheus' client libraries tell of every process, under their names: processor time, resident memory,
// open files. What the system does not tell is left out. Thread-safe.
void AddProcessMetrics(MetricText* text);

}  // namespace rubato

#endif  // RUBATO_COMMON_METRICS_PROCESS_METRICS_H_
