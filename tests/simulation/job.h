#ifndef RUBATO_TESTS_SIMULATION_JOB_H_
#define RUBATO_TESTS_SIMULATION_JOB_H_

#include "proto/job_config.pb.h"
#include "tests/simulation/scenario.h"

namespace rubato::simulation {

// What tasks tell the coordinator when they register.
inline constexpr uint64_t kConfigFingerprint = 0x5eed;
inline constexpr int64_t kTrainExamples = 1'000'000;
inline constexpr int64_t kShardExamples = 20;

// The config of the job that a scenario speaks of: a model that is cut into scenario.chunks chunks, and data that is
// never used up.
v1::JobConfig MakeJobConfig(const Scenario& scenario);

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_JOB_H_
