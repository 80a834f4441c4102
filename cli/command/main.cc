// The `rubato` command.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

#include "cli/command/commands.h"
#include "common/clock.h"
#include "common/transport/process_tuning.h"

int main(int argc, char** argv) {
  // Of a job on this machine RunJob says otherwise.
  rubato::ScheduleToAnswer();
  rubato::RealClock clock;
  std::error_code error;
  rubato::Environment environment;
  environment.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  environment.clock = &clock;
  environment.out = &std::cout;
  environment.err = &std::cerr;
  if (argc > 1 && std::string(argv[1]) == "run") {
    char** const end = argv + argc;
    char** const dashes = std::find(argv, end, std::string("--"));
    if (dashes != end) environment.rest.assign(dashes + 1, end);
    argc = static_cast<int>(dashes - argv);
  }

  CLI::App app("Trains models on a parameter server.", "rubato");
  app.require_subcommand(1);
  int exit_code = rubato::kExitOk;
  rubato::AddTrainCommand(&app, &environment, &exit_code);
  rubato::AddRunCommand(&app, &environment, &exit_code);
  rubato::AddServeCommand(&app, &environment, &exit_code);
  rubato::AddCompareCommand(&app, &environment, &exit_code);
  rubato::AddSwitchCommand(&app, &environment, &exit_code);
  rubato::AddStatusCommand(&app, &environment, &exit_code);
  rubato::AddStopCommand(&app, &environment, &exit_code);
  rubato::AddCredentialsCommand(&app, &environment, &exit_code);
  rubato::AddConfigCommand(&app, &environment, &exit_code);
  rubato::AddExportCommand(&app, &environment, &exit_code);
  rubato::AddPredictCommand(&app, &environment, &exit_code);
  rubato::AddDeployCommand(&app, &environment, &exit_code);
  rubato::AddAuditCommand(&app, &environment, &exit_code);
  rubato::AddCheckpointCommand(&app, &environment, &exit_code);
  rubato::AddDoctorCommand(&app, &environment, &exit_code);
  rubato::AddSimulateCommand(&app, &environment, &exit_code);
  rubato::AddReplayCommand(&app, &environment, &exit_code);
  rubato::AddPageCommand(&app, &environment, &exit_code);
  rubato::AddReportCommand(&app, &environment, &exit_code);
  rubato::AddPlanCapacityCommand(&app, &environment, &exit_code);
  rubato::AddBytePairsCommand(&app, &environment, &exit_code);
  rubato::AddTraceCommand(&app, &environment, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& parse_error) {
    // 0 for --help, which comes as an error too.
    return app.exit(parse_error) == 0 ? rubato::kExitOk : rubato::kExitUsage;
  }
  return exit_code;
}
