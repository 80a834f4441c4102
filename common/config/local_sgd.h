#ifndef RUBATO_COMMON_CONFIG_LOCAL_SGD_H_
#define RUBATO_COMMON_CONFIG_LOCAL_SGD_H_

#include <cstdint>
#include <string>

#include "proto/job_config.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// What consistency.sync_every means to the tasks (local SGD: Stich 2019). With k above 1, a step is still one round of
// pull, compute and push; the worker computes k batches in it, updates its own weights with the job's optimizer after
// each, and pushes its weights at the step's start minus those at its end. Plans may change k, so a job is one of local
// SGD from beginning to end if any of its plans may have more than one batch in a step. All functions are pure, and
// take an absent sync_every for 1.

// Whether workers apply the job's optimizer, and servers the mean of their moves.
bool TrainsLocally(const v1::JobConfig& config);

// The field that makes it so, for errors: "consistency.sync_every is 4". Of the largest where there are several.
std::string WhyLocal(const v1::JobConfig& config);

// Batches in one step of a worker, 1 or more: under the rules that the job begins with, under a plan, and at most.
int64_t BatchesPerStep(const v1::JobConfig& config);
int64_t BatchesPerStep(const v1::JobConfig& config, const v1::Plan& plan);
int64_t MostBatchesPerStep(const v1::JobConfig& config);

// Examples in one step of a worker, at most: batch size times batches. As many as that in each step, but for the data's
// end, in jobs whose plans do not change k, as all with STATIC dispatch. Stays at INT64_MAX when it would be larger.
int64_t ExamplesPerStep(const v1::JobConfig& config);

// What the servers apply with what workers push. The job's optimizer, or with local SGD the plain subtraction of the
// mean of what was pushed: SGD with learning rate 1, without decay and schedule. The plan's
// factor on the learning rate is then the workers' to apply, as decay and schedule are. With delayed Nesterov
// (consistency.compensation) it is NESTEROV, with that momentum, and in local SGD that learning rate.
v1::OptimizerConfig ServerOptimizer(const v1::JobConfig& config);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_LOCAL_SGD_H_
