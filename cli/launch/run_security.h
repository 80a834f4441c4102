#ifndef RUBATO_CLI_LAUNCH_RUN_SECURITY_H_
#define RUBATO_CLI_LAUNCH_RUN_SECURITY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/task_security.h"

namespace rubato {

// Of the operator of the run in this directory: as its config says, which is in there, with the directory's own
// credentials unless the config names others. Null: the job asks for none. Errors of ParseText and of
// OpenOperatorSecurity.
absl::StatusOr<std::shared_ptr<const TaskSecurity>> SecurityOfRun(const std::string& run_directory, absl::Time now);

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_RUN_SECURITY_H_
