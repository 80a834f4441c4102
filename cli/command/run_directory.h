#ifndef RUBATO_CLI_COMMAND_RUN_DIRECTORY_H_
#define RUBATO_CLI_COMMAND_RUN_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rubato {

// Makes an empty directory for a new run, but for credentials, which stay. What an earlier run left there is deleted if
// `overwrite` says so. AlreadyExists: it is not empty. FailedPrecondition: it holds something that no run has written,
// which is never deleted; nothing has changed. Other codes: the file system's reason.
absl::Status PrepareRunDirectory(const std::string& directory, bool overwrite);

// The coordinator's "host:port": `text` itself, or that of the run in the directory `text`.
// NotFound: the directory holds no coordinator.address. InvalidArgument: neither a directory nor "host:port".
absl::StatusOr<std::string> CoordinatorAddress(const std::string& text);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_RUN_DIRECTORY_H_
