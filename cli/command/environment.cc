#include "cli/command/environment.h"

namespace rubato {

int ReportError(const Environment& environment, absl::string_view command, const absl::Status& status) {
  *environment.err << "rubato " << command << ": " << status.message() << std::endl;
  bool usage = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return usage ? kExitUsage : kExitFailed;
}

}  // namespace rubato
