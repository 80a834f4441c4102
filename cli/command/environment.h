#ifndef RUBATO_CLI_COMMAND_ENVIRONMENT_H_
#define RUBATO_CLI_COMMAND_ENVIRONMENT_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"

namespace rubato {

// What every subcommand of `rubato` has at hand. The pointers outlive the commands.
struct Environment {
  // Path of the running program, beside which the other programs are.
  std::string program;
  // Of `run`: what stands after the first "--", which is somebody else's command line.
  std::vector<std::string> rest;
  Clock* clock = nullptr;
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
};

// Exit statuses of `rubato`.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

// Writes "rubato <command>: <message>" to the error stream. Returns kExitUsage for InvalidArgument and NotFound, which
// the user can mend by saying something else, and kExitFailed otherwise.
int ReportError(const Environment& environment, absl::string_view command, const absl::Status& status);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_ENVIRONMENT_H_
