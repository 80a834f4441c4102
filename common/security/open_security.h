#ifndef RUBATO_COMMON_SECURITY_OPEN_SECURITY_H_
#define RUBATO_COMMON_SECURITY_OPEN_SECURITY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/security/identity.h"
#include "common/security/task_security.h"
#include "proto/job_config.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// Where the credentials of the config's tasks are on this machine.
std::string CredentialsFolder(const v1::JobConfig& config);

// An address that is listened on or called, and the flag or field that says so.
struct NamedAddress {
  std::string field;
  std::string address;
};

// Of a task, as its config's `security` says; null if that is insecure. Says in `log` if its certificate expires soon.
// Starts threads. Errors of TaskSecurity::Create, and of CheckAddress.
absl::StatusOr<std::shared_ptr<const TaskSecurity>> OpenTaskSecurity(const v1::JobConfig& config,
                                                                     const v1::TaskId& task,
                                                                     const std::vector<NamedAddress>& addresses,
                                                                     const Clock& clock, Logger* log);

// Makes the token of a job without certificates, if its tasks are to have one. Of its coordinator, once it listens.
// Errors of MakeJobToken.
absl::Status PrepareJobToken(const v1::JobConfig& config);

// Of an operator who has the config.
absl::StatusOr<std::shared_ptr<const TaskSecurity>> OpenOperatorSecurity(const v1::JobConfig& config, absl::Time now);

// Of somebody to whom the folder alone is named; null if it is empty, which is to be refused where anything is
// protected.
absl::StatusOr<std::shared_ptr<const TaskSecurity>> OpenFolderSecurity(const std::string& folder, Party party,
                                                                       uint32_t index, absl::Time now);

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_OPEN_SECURITY_H_
