#ifndef RUBATO_CLI_DEPLOY_COPIED_PATHS_H_
#define RUBATO_CLI_DEPLOY_COPIED_PATHS_H_

#include <string>
#include <vector>

#include "proto/job_config.pb.h"

namespace rubato {

// Makes the paths of files that the job reads those on the hosts: what lies in one of `copies`, which are relative to
// the working directory and are brought to the hosts by these names, is relative to the folder that tasks run in there.
// Other paths stay as they are.
void UseCopiedPaths(const std::vector<std::string>& copies, v1::JobConfig* config);

}  // namespace rubato

#endif  // RUBATO_CLI_DEPLOY_COPIED_PATHS_H_
