#ifndef RUBATO_TESTS_SIMULATION_JOB_H_
#define RUBATO_TESTS_SIMULATION_JOB_H_

#include "common/model_spec.h"
#include "proto/job_config.pb.h"
#include "tests/simulation/scenario.h"

namespace rubato::simulation {

// What tasks tell the coordinator when they register.
inline constexpr uint64_t kConfigFingerprint = 0x5eed;
inline constexpr int64_t kShardExamples = 20;

// In a training set that is never used up.
inline constexpr int64_t kManyExamples = 1'000'000;

// In the training set.
int64_t TrainExamples(const Scenario& scenario);

// The config of the job that a scenario speaks of: a model that is cut into scenario.chunks chunks, and its table's
// shards. The seed is the scenario's.
v1::JobConfig MakeJobConfig(const Scenario& scenario);

// Its model.
ModelSpec MakeModelSpec(const v1::JobConfig& config);

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_JOB_H_
