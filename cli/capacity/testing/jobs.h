#ifndef RUBATO_CLI_CAPACITY_TESTING_JOBS_H_
#define RUBATO_CLI_CAPACITY_TESTING_JOBS_H_

#include <string>
#include <vector>

#include "cli/capacity/job_layout.h"
#include "proto/job_config.pb.h"

namespace rubato::capacity {

// A job with one linear layer "fc" of 64 x 16 weights and a bias, one worker, one server with one partition, and SYNC,
// unless `overrides` ("path=value") say otherwise.
v1::JobConfig SmallJob(const std::vector<std::string>& overrides = {});

JobLayout SmallLayout(const std::vector<std::string>& overrides = {});

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_TESTING_JOBS_H_
