#ifndef RUBATO_COMMON_CONFIG_CHECKPOINT_DIRECTORY_H_
#define RUBATO_COMMON_CONFIG_CHECKPOINT_DIRECTORY_H_

#include <string>

#include "proto/job_config.pb.h"

namespace rubato {

// The directory that holds a directory for each checkpoint of the job.
std::string CheckpointDirectory(const v1::JobConfig& config);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_CHECKPOINT_DIRECTORY_H_
