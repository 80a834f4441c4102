#ifndef RUBATO_COMMON_CONFIG_BATCH_SIZES_H_
#define RUBATO_COMMON_CONFIG_BATCH_SIZES_H_

#include <cstdint>

#include "proto/job_config.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// How many examples a worker takes at a time, if a plan may say it (policy BALANCE). Both functions are pure.

// The most that a plan of this job gives one worker: training.batch_size, or with BALANCE balance.batch_max times that.
// Workers have memory for so many.
int64_t LargestBatch(const v1::JobConfig& config);

// Examples in a batch of the worker with this index under the plan, at most LargestBatch: training.batch_size unless
// the plan has a size for it.
int64_t BatchSize(const v1::JobConfig& config, const v1::Plan& plan, uint32_t worker);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_BATCH_SIZES_H_
