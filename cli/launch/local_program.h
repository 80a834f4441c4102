#ifndef RUBATO_CLI_LAUNCH_LOCAL_PROGRAM_H_
#define RUBATO_CLI_LAUNCH_LOCAL_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rubato {

// The program's path: itself if it has a slash, otherwise where the PATH has it. NotFound.
absl::StatusOr<std::string> FindProgram(const std::string& name);

// Runs a program of this machine to its end, without a shell, and returns what it wrote to its standard output.
// `argv[0]` as for FindProgram. Aborted: it ended with another status than 0; has what it wrote to its standard error.
absl::StatusOr<std::string> RunProgram(std::vector<std::string> argv);

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_LOCAL_PROGRAM_H_
