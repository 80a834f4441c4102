#ifndef RUBATO_CLI_COMMAND_COMMANDS_H_
#define RUBATO_CLI_COMMAND_COMMANDS_H_

#include <CLI/CLI.hpp>

#include "cli/command/environment.h"

namespace rubato {

// Each adds one subcommand to `app`. When it is the one that was asked for, parsing runs it and stores its exit status
// in `exit_code`. `environment` and `exit_code` outlive `app`.
void AddTrainCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddRunCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddServeCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddCompareCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddSwitchCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddStatusCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddStopCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddCredentialsCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddConfigCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddExportCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddPredictCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddDeployCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddAuditCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddCheckpointCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddDoctorCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddSimulateCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddReplayCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddPageCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddReportCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddPlanCapacityCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddBytePairsCommand(CLI::App* app, const Environment* environment, int* exit_code);
void AddTraceCommand(CLI::App* app, const Environment* environment, int* exit_code);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_COMMANDS_H_
