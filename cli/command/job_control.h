#ifndef RUBATO_CLI_COMMAND_JOB_CONTROL_H_
#define RUBATO_CLI_COMMAND_JOB_CONTROL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "cli/command/environment.h"
#include "cli/launch/coordinator_client.h"

namespace rubato {

// What changes a running job, for the commands that reach its coordinator in different ways.

struct SwitchOptions {
  std::string mode;
  uint32_t quorum = 0;
  // 0: by the rule.
  double learning_rate_scale = 0;
  // 0: as it is.
  uint32_t sync_every = 0;
  // Absent: as it is.
  std::optional<double> momentum = std::nullopt;
  // "on", "off"; empty: as it is.
  std::string compression;
  double timeout_seconds = 60;
};

void AddSwitchOptions(CLI::App* command, SwitchOptions* options);
// Changes the mode, and says from which step on. InvalidArgument: there is no such mode. Also the errors of
// CoordinatorClient::SwitchMode.
absl::Status SwitchJob(CoordinatorClient* coordinator, const SwitchOptions& options, const Environment& environment);

struct StopOptions {
  // May be empty: who asked is said anyway.
  std::string reason;
};

void AddStopOptions(CLI::App* command, StopOptions* options);
// Asks the job to stop, and says so. `place` is where the job is, for the message.
absl::Status StopJob(CoordinatorClient* coordinator, const StopOptions& options, const std::string& place,
                     const Environment& environment);

struct CheckpointNowOptions {
  double timeout_seconds = 120;
};

void AddCheckpointNowOptions(CLI::App* command, CheckpointNowOptions* options);
// Has the job, which trains, write a checkpoint, and says when it is complete. Errors of
// CoordinatorClient::WriteCheckpointNow.
absl::Status WriteCheckpointNow(CoordinatorClient* coordinator, const CheckpointNowOptions& options,
                                const Environment& environment);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_JOB_CONTROL_H_
