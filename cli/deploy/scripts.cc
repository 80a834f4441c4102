#include "cli/deploy/scripts.h"

#include "absl/strings/str_cat.h"
#include "cli/deploy/shell.h"

namespace rubato {
namespace {

// The texts: kPrologue, kProbe, ...
#include "cli/deploy/remote_scripts.inc"

const char* TextOf(HostScript script) {
  switch (script) {
    case HostScript::kProbe:
      return kProbe;
    case HostScript::kUnpack:
      return kUnpack;
    case HostScript::kUnpackData:
      return kUnpackData;
    case HostScript::kCredentials:
      return kCredentials;
    case HostScript::kLaunch:
      return kLaunch;
    case HostScript::kWatch:
      return kWatch;
    case HostScript::kStop:
      return kStop;
    case HostScript::kState:
      return kState;
    case HostScript::kLogs:
      return kLogs;
    case HostScript::kFetch:
      return kFetch;
    case HostScript::kRemove:
      return kRemove;
    case HostScript::kRenew:
      return kRenew;
  }
  return "";
}

}  // namespace

std::string ScriptText(HostScript script, const std::vector<std::pair<std::string, std::string>>& variables) {
  return absl::StrCat(ShellAssignments(variables), kPrologue, TextOf(script));
}

}  // namespace rubato
