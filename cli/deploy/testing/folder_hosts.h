#ifndef RUBATO_CLI_DEPLOY_TESTING_FOLDER_HOSTS_H_
#define RUBATO_CLI_DEPLOY_TESTING_FOLDER_HOSTS_H_

#include <filesystem>
#include <memory>
#include <string>

#include "cli/deploy/package.h"
#include "cli/deploy/ssh_job.h"
#include "cli/launch/stop_signals.h"
#include "common/clock.h"
#include "gtest/gtest.h"
#include "proto/deployment.pb.h"
#include "proto/job_config.pb.h"

namespace rubato {

// Jobs on hosts that are folders of this machine: a stand-in for ssh runs the command in a shell. The package's
// coordinator only says that it listens, its servers run for a minute, and its workers end at once, with status 3.
class FolderHosts : public ::testing::Test {
 protected:
  FolderHosts();

  std::string Path(const std::string& name) const { return (root_ / name).string(); }

  // A server on the first of two hosts, with the coordinator, and all else on the second. A host with the name "away"
  // cannot be reached.
  std::unique_ptr<SshJob> Job(const std::string& id, const std::string& second = "b");

  HostNeeds Needs() const { return {.machine = package_.machine}; }

  // What DescribeTasks says once it has `part`.
  std::string TasksWith(SshJob* job, const std::string& part);

  const std::filesystem::path root_;
  // A job's processes are found by its id, so each test program on this machine needs one of its own.
  const std::string id_;
  RealClock clock_;
  std::unique_ptr<StopSignals> signals_;
  Package package_;
  v1::JobConfig config_;
  // What workers are; without a command: the package's.
  v1::WorkerProgram program_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_DEPLOY_TESTING_FOLDER_HOSTS_H_
