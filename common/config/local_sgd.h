#ifndef RUBATO_COMMON_CONFIG_LOCAL_SGD_H_
#define RUBATO_COMMON_CONFIG_LOCAL_SGD_H_

#include <cstdint>

#include "proto/job_config.pb.h"

namespace rubato {

// What consistency.sync_every means to the tasks (local SGD: Stich 2019). With k above 1, a step is still one round of
// pull, compute and push; the worker computes k batches in it, updates its own weights with the job's optimizer after
// each, and pushes its weights at the step's start minus those at its end. All functions are pure, and take an absent
// sync_every for 1.

// Batches in one step of a worker, 1 or more.
int64_t BatchesPerStep(const v1::JobConfig& config);

// Examples in one step of a worker: batch size times batches. Stays at INT64_MAX when it would be larger.
int64_t ExamplesPerStep(const v1::JobConfig& config);

// What the servers apply with what workers push. The job's optimizer, or with local SGD the plain subtraction of the
// mean of what was pushed: SGD with learning rate 1, without decay and schedule. The plan's
// factor on the learning rate is then the workers' to apply, as decay and schedule are. With delayed Nesterov
// (consistency.compensation) it is NESTEROV, with that momentum, and in local SGD that learning rate.
v1::OptimizerConfig ServerOptimizer(const v1::JobConfig& config);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_LOCAL_SGD_H_
