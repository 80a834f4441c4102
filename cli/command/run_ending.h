#ifndef RUBATO_CLI_COMMAND_RUN_ENDING_H_
#define RUBATO_CLI_COMMAND_RUN_ENDING_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace rubato {

// How a run came to its end, as its directory tells.
struct RunEnding {
  bool ok = false;
  // Somebody has asked for its end, and it has written checkpoint "stopped".
  bool stopped = false;
  // Why it is not done; empty if it is.
  std::string error;
  // When the last line of its record was written.
  absl::Time at;
  // Since training began; absent if it never did.
  std::optional<absl::Duration> trained;
  // The checkpoint of its end, in the run directory or where checkpoint.directory says: "checkpoints/final", or if it
  // was asked to stop "stopped", or a newer one if it went on from that. Empty: it has left none that is whole.
  std::string weights;
};

// Nothing: the run goes on, or goes on again, its coordinator was killed, or the directory has no run record that can
// be read.
std::optional<RunEnding> ReadRunEnding(const std::string& run_directory);

// That it ended, when, how, and where its weights are; one or two lines without a newline.
std::string DescribeEnding(const RunEnding& ending, const std::string& run_directory);

// How a job that was stopped is continued: "go on with rubato train CONFIG --resume", or with rubato run if its
// workers are clients, and what its weights are for.
std::string WayOn(const std::string& weights);

// The outcome of a job, and how to go on if it was stopped: an error of a run whose directory has checkpoint
// "stopped" says so too.
absl::Status WithWayOn(const absl::Status& outcome, const std::string& run_directory);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_RUN_ENDING_H_
