#ifndef RUBATO_CLI_CHECKPOINT_RUN_CHECKPOINTS_H_
#define RUBATO_CLI_CHECKPOINT_RUN_CHECKPOINTS_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace rubato {

// Where the checkpoints of a run are: the checkpoint.directory of its job.textproto, or checkpoints in `run_directory`,
// wherever that is now.
std::string CheckpointsOfRun(const std::string& run_directory);

// The name of a run's checkpoint: `name` ("step0", "step150", "stopped", "final") if it is there, or with none "final",
// or else the newest complete one but "step0", whose weights are those of no training. NotFound says which there are.
absl::StatusOr<std::string> FindCheckpoint(const std::string& run_directory, const std::string& name);

// Writes to `out` what each checkpoint of a run holds, in the order of their steps, and which ones are not complete;
// with a `name`, of that alone. Reads all of their files. InvalidArgument: there is none of that name, and which there
// are. NotFound: there is none at all. DataLoss: one cannot be used; all others are described. `now` is for their ages.
absl::Status DescribeCheckpoints(const std::string& run_directory, const std::string& name, absl::Time now,
                                 std::ostream* out);

}  // namespace rubato

#endif  // RUBATO_CLI_CHECKPOINT_RUN_CHECKPOINTS_H_
