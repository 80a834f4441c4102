#ifndef RUBATO_CLI_CAPACITY_RECORDED_STEPS_H_
#define RUBATO_CLI_CAPACITY_RECORDED_STEPS_H_

#include <vector>

#include "cli/capacity/costs.h"
#include "cli/capacity/job_layout.h"
#include "cli/capacity/task_trace.h"

namespace rubato::capacity {

// The whole steps of a worker's trace, in their order: how long it worked until each of its waits and pushes. Its waits
// for weights are left out, and its pauses counted apart. Steps without a forward pass, and those of a model with other
// layers, are left out. Pure.
std::vector<RecordedStep> ReadRecordedSteps(const TaskTrace& worker, const std::vector<LayerExchange>& layers);

// Steps a second of a worker's trace, from its first to its last whole step. 0 with fewer than two. Pure.
double StepRateOf(const TaskTrace& worker);

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_RECORDED_STEPS_H_
