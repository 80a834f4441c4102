#include "cli/launch/run_security.h"

#include "common/config/config_text.h"
#include "common/security/open_security.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {

absl::StatusOr<std::shared_ptr<const TaskSecurity>> SecurityOfRun(const std::string& run_directory, absl::Time now) {
  v1::JobConfig config;
  const std::string stored = JoinPath(run_directory, "job.textproto");
  if (FileExists(stored)) {
    RUBATO_ASSIGN_OR_RETURN(const std::string text, ReadFile(stored));
    RUBATO_RETURN_IF_ERROR(ParseText(text, stored, &config));
  }
  // Its own path may begin in another working directory.
  config.set_run_directory(run_directory);
  return OpenOperatorSecurity(config, now);
}

}  // namespace rubato
