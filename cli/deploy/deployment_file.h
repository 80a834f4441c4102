#ifndef RUBATO_CLI_DEPLOY_DEPLOYMENT_FILE_H_
#define RUBATO_CLI_DEPLOY_DEPLOYMENT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/deployment.pb.h"

namespace rubato {

// <run directory>/deployment.textproto: where a job's tasks are.

absl::Status SaveDeployment(const v1::Deployment& deployment, const std::string& run_directory);

// NotFound: there is none; InvalidArgument: it is none. Both name the file.
absl::StatusOr<v1::Deployment> LoadDeployment(const std::string& run_directory);

}  // namespace rubato

#endif  // RUBATO_CLI_DEPLOY_DEPLOYMENT_FILE_H_
