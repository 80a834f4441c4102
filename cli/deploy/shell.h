#ifndef RUBATO_CLI_DEPLOY_SHELL_H_
#define RUBATO_CLI_DEPLOY_SHELL_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace rubato {

// One word of a POSIX shell's command line that stands for `text`, whatever is in it but a zero byte.
std::string ShellQuote(absl::string_view text);

// The words of a command line.
std::string ShellCommand(const std::vector<std::string>& words);

// Lines that set variables.
std::string ShellAssignments(const std::vector<std::pair<std::string, std::string>>& variables);

// A command line that runs a POSIX shell script in whatever shell the user logs in with: to that shell it is made of
// letters, digits and a pair of quotes. The script's standard input is the command's. `environment`: "NAME=value" with
// no character that a shell minds, for the script and all that it starts; empty: nothing.
std::string RemoteCommand(absl::string_view script, absl::string_view environment);

}  // namespace rubato

#endif  // RUBATO_CLI_DEPLOY_SHELL_H_
