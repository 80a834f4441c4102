#ifndef RUBATO_CLI_COMMAND_STATUS_TEXT_H_
#define RUBATO_CLI_COMMAND_STATUS_TEXT_H_

#include <string>

#include "proto/coordinator.pb.h"

namespace rubato {

// A job's status for a person: where it stands, its plan, each task with its clock, and who waits for whom.
std::string StatusText(const v1::JobStatus& status);

// Its beginning: the job, where it stands, its plan, its last checkpoint and rollback.
std::string StatusHead(const v1::JobStatus& status);

// "checkpoint step1200 is being written, which waits for server 1"; empty if none is.
std::string CheckpointInProgress(const v1::JobStatus& status);

// "loss scale 32768, steps skipped: 2"; empty if the worker does not compute in FP16.
std::string LossScaling(const v1::WorkerProgress& progress);

// "alive", "evicted", ...
std::string TaskStateName(v1::TaskStatus::State state);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_STATUS_TEXT_H_
