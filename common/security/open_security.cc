#include "common/security/open_security.h"

#include "common/security/credentials.h"
#include "common/security/job_token.h"
#include "common/security/sender.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {

std::string CredentialsFolder(const v1::JobConfig& config) {
  const std::string& folder = config.security().credentials();
  return folder.empty() ? JoinPath(config.run_directory(), "credentials") : folder;
}

absl::StatusOr<std::shared_ptr<const TaskSecurity>> OpenTaskSecurity(const v1::JobConfig& config,
                                                                     const v1::TaskId& task,
                                                                     const std::vector<NamedAddress>& addresses,
                                                                     const Clock& clock, Logger* log) {
  if (config.security().insecure()) return nullptr;
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<const TaskSecurity> security,
                          TaskSecurity::Create({.credentials = CredentialsFolder(config),
                                                .job = config.name(),
                                                .party = PartyOf(task.role()),
                                                .index = task.index(),
                                                .now = clock.Now()}));
  for (const NamedAddress& named : addresses) {
    RUBATO_RETURN_IF_ERROR(security->CheckAddress(named.field, named.address));
  }
  if (const std::string warning = security->ExpiryWarning(clock.Now()); !warning.empty()) log->Warning(warning);
  return security;
}

absl::Status PrepareJobToken(const v1::JobConfig& config) {
  const std::string folder = CredentialsFolder(config);
  if (config.security().insecure() || HasAuthority(folder)) return absl::OkStatus();
  return MakeJobToken(folder);
}

absl::StatusOr<std::shared_ptr<const TaskSecurity>> OpenOperatorSecurity(const v1::JobConfig& config, absl::Time now) {
  if (config.security().insecure()) return nullptr;
  return TaskSecurity::Create({.credentials = CredentialsFolder(config), .job = config.name(), .now = now});
}

absl::StatusOr<std::shared_ptr<const TaskSecurity>> OpenFolderSecurity(const std::string& folder, Party party,
                                                                       uint32_t index, absl::Time now) {
  if (folder.empty()) return nullptr;
  return TaskSecurity::Create({.credentials = folder, .party = party, .index = index, .now = now});
}

}  // namespace rubato
