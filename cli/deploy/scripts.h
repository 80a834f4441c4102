#ifndef RUBATO_CLI_DEPLOY_SCRIPTS_H_
#define RUBATO_CLI_DEPLOY_SCRIPTS_H_

#include <string>
#include <utility>
#include <vector>

namespace rubato {

// The scripts that run on hosts: those of the folder remote/, whose comments say what they do and need.
enum class HostScript {
  kProbe,
  kUnpack,
  kUnpackData,
  kCredentials,
  kLaunch,
  kWatch,
  kStop,
  kState,
  kLogs,
  kFetch,
  kRemove,
  kRenew
};

// The script's text, after lines that set its variables.
std::string ScriptText(HostScript script, const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace rubato

#endif  // RUBATO_CLI_DEPLOY_SCRIPTS_H_
