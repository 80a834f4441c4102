#ifndef RUBATO_CLI_REPLAY_REPLAY_H_
#define RUBATO_CLI_REPLAY_REPLAY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/replay/weight_comparison.h"
#include "common/clock.h"
#include "worker/device/backend_choice.h"

namespace rubato {

struct ReplayOptions {
  // Of the run, which was trained with cluster.update_log.
  std::string run_directory;
  // Where the weights go, as the checkpoint "final" of a run of its own. Has to be empty, or not there.
  std::string output;
  // Whose parts the checkpoint consists of. They do not change a bit of the weights.
  uint32_t servers = 1;
  // As far as the first so many updates of each chunk; nothing: all.
  std::optional<int64_t> until_step;
  // "path=value": what is computed otherwise, in the order of the run.
  std::vector<std::string> overrides;
  worker::BackendFactory factory;
  Clock* clock = nullptr;
  // Is told now and then how far it is: updates of chunks that are done, and of all. May be empty.
  std::function<void(int64_t done, int64_t all)> progress;
};

struct ReplayReport {
  int64_t members = 0;
  int64_t steps = 0;
  int64_t chunks = 0;
  int64_t updates = 0;
  // Of the run's and the replay's checkpoint "final". Nothing: the run has none, or it was not replayed as it was.
  std::optional<WeightComparison> comparison;
};

// Trains a recorded run again: each step is computed from the versions that it was computed from, and updates are made
// in the order in which they were made, so that asynchronous training gives the same bits again, whatever the machine's
// speed. One process, a thread for each worker. docs/operating.md says what can be replayed.
//
// NotFound: there are no update logs. DataLoss: a log is corrupt, or contradicts itself; names the log and the record.
// FailedPrecondition: it is a run that cannot be replayed; says why. InvalidArgument: an override changes what the
// order depends on; or `output` is in use. Otherwise errors of the config, the data and the model.
absl::StatusOr<ReplayReport> ReplayRun(const ReplayOptions& options);

}  // namespace rubato

#endif  // RUBATO_CLI_REPLAY_REPLAY_H_
