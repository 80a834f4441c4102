#include "cli/deploy/ssh_job.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/deploy/deployment_file.h"
#include "cli/deploy/testing/folder_hosts.h"
#include "common/storage/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class SshJobTest : public FolderHosts {
 protected:
  std::unique_ptr<SshJob> Started(const std::string& id) {
    std::unique_ptr<SshJob> job = Job(id);
    EXPECT_TRUE(job->Check(Needs(), package_, nullptr).ok());
    EXPECT_TRUE(job->Copy(package_, nullptr).ok());
    const absl::Status started = job->Start(config_, Path("job.textproto"), package_, /*resume=*/false);
    EXPECT_TRUE(started.ok()) << started;
    return job;
  }
};

TEST_F(SshJobTest, StartsTasksReadsTheirLogsAndLeavesNoProcess) {
  std::unique_ptr<SshJob> job = Started(id_);
  EXPECT_EQ(job->deployment().coordinator(), "[fd00::1]:7071");
  const std::string tasks = TasksWith(job.get(), "b: worker-0 ended 3");
  EXPECT_THAT(tasks, HasSubstr("a: coordinator running"));
  EXPECT_THAT(tasks, HasSubstr("a: server-0 running"));
  std::string log;
  EXPECT_TRUE(job->ReadLogs({"worker-0"}, 5, &log).ok());
  EXPECT_THAT(log, HasSubstr(absl::StrCat("--config jobs/", id_,
                                          "/job.textproto --task_index 0 --coordinator [fd00::1]:7071 --role "
                                          "worker")));
  EXPECT_TRUE(job->Stop().ok());
  EXPECT_THAT(job->DescribeTasks(), Not(HasSubstr("running")));
  EXPECT_TRUE(job->Fetch(Path("run")).ok());
  EXPECT_THAT(*ReadFile(Path("run/logs/server-0.log")), HasSubstr("--listen [::]:0 --advertise_host [fd00::1]"));
  EXPECT_TRUE(FileExists(Path("run/logs/worker-0.log")));
  EXPECT_TRUE(job->Remove().ok());
  EXPECT_FALSE(FileExists(Path(absl::StrCat("b/jobs/", id_))));
}

TEST_F(SshJobTest, WorkersMayBeSomebodysProgram) {
  config_.mutable_cluster()->set_workers(2);
  program_.add_command("sh");
  program_.add_command("-c");
  program_.add_command(
      "echo \"$SAID: rank $RUBATO_RANK of $RUBATO_SIZE, $RUBATO_LOCAL_RANK of $RUBATO_LOCAL_SIZE here, "
      "at $RUBATO_COORDINATOR, with $RUBATO_LIBRARY\"; exit 3");
  program_.add_environment("SAID=it's so");
  std::unique_ptr<SshJob> job = Started(id_);
  for (const char* task : {"worker-0", "worker-1"}) TasksWith(job.get(), absl::StrCat(task, " ended 3"));
  std::string log;
  EXPECT_TRUE(job->ReadLogs({"worker-1"}, 5, &log).ok());
  EXPECT_THAT(log, HasSubstr("it's so: rank 1 of 2, 1 of 2 here, at [fd00::1]:7071, with /"));
  EXPECT_THAT(log, HasSubstr("/b/packages/"));
  EXPECT_THAT(log, HasSubstr("/bin/librubato_client.so\n"));
  EXPECT_TRUE(job->Stop().ok());
}

TEST_F(SshJobTest, TasksTakeTurnsWithTheirHostsGpus) {
  std::ofstream(Path("gpus")) << 3;
  config_.mutable_cluster()->set_workers(2);
  config_.mutable_cluster()->set_evaluators(1);
  std::unique_ptr<SshJob> job = Started(id_);
  for (const char* task : {"worker-0", "worker-1", "evaluator-0"}) TasksWith(job.get(), absl::StrCat(task, " ended 3"));
  for (const auto& [task, gpu] : {std::pair("worker-0", 0), {"worker-1", 1}, {"evaluator-0", 2}}) {
    std::string log;
    EXPECT_TRUE(job->ReadLogs({task}, 1, &log).ok());
    EXPECT_THAT(log, HasSubstr(absl::StrCat("--set training.device_index=", gpu)));
  }
  EXPECT_TRUE(job->Stop().ok());
}

TEST_F(SshJobTest, OneJobIsStoppedAndAnotherOnTheSameHostsGoesOn) {
  std::unique_ptr<SshJob> first = Started(id_);
  std::unique_ptr<SshJob> second = Started(absl::StrCat(id_, "1"));
  EXPECT_TRUE(first->Stop().ok());
  EXPECT_THAT(TasksWith(second.get(), "server-0 running"), HasSubstr("a: server-0 running"));
  EXPECT_THAT(first->DescribeTasks(), Not(HasSubstr("running")));
  EXPECT_TRUE(second->Stop().ok());
}

TEST_F(SshJobTest, NothingIsStartedOnceTheJobWasStopped) {
  std::unique_ptr<SshJob> job = Started(id_);
  EXPECT_TRUE(job->Stop().ok());
  const absl::Status status = job->Start(config_, Path("job.textproto"), package_, /*resume=*/false);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a: the job is being stopped"));
  EXPECT_THAT(job->DescribeTasks(), Not(HasSubstr("running")));
}

TEST_F(SshJobTest, CopiesAPackageOnceAndRefusesADamagedOne) {
  std::unique_ptr<SshJob> job = Job(id_);
  ASSERT_TRUE(job->Check(Needs(), package_, nullptr).ok());
  ASSERT_TRUE(job->Copy(package_, nullptr).ok());
  ASSERT_TRUE(job->Check(Needs(), package_, nullptr).ok());
  Package gone = package_;
  gone.archive.path = Path("absent");
  EXPECT_TRUE(job->Copy(gone, nullptr).ok());

  Package damaged = package_;
  damaged.archive.id = "0123";
  std::fstream(Path("package.tar.gz"), std::ios::in | std::ios::out).seekp(100) << "damage";
  const absl::Status status = job->Copy(damaged, nullptr);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("b: "));
  EXPECT_FALSE(FileExists(Path("b/packages/0123")));
}

TEST_F(SshJobTest, CopiesDataToWhereItIsRead) {
  fs::create_directories(root_ / "here/data");
  std::ofstream(Path("here/data/a b")) << "examples";
  const fs::path before = fs::current_path();
  fs::current_path(root_ / "here");
  absl::StatusOr<Archive> data = PackData({"data"}, Path("data.tar.gz"));
  EXPECT_EQ(PackData({"data"}, Path("again.tar.gz"))->id, data->id);
  EXPECT_THAT(std::string(PackData({"../here"}, Path("x")).status().message()), HasSubstr("value \"../here\""));
  fs::current_path(before);
  ASSERT_TRUE(data.ok()) << data.status();
  std::unique_ptr<SshJob> job = Job(id_);
  ASSERT_TRUE(job->Check(Needs(), package_, &*data).ok());
  ASSERT_TRUE(job->Copy(package_, &*data).ok());
  EXPECT_EQ(*ReadFile(Path("b/data/a b")), "examples");
}

TEST_F(SshJobTest, NamesEveryHostThatCannotBeUsed) {
  HostNeeds needs = Needs();
  needs.free_kib = int64_t{1} << 50;
  const std::string error = std::string(Job(id_, "away")->Check(needs, package_, nullptr).message());
  EXPECT_THAT(error, HasSubstr("2 of 2 hosts cannot be used:"));
  EXPECT_THAT(error, HasSubstr("a: its disk is full"));
  EXPECT_THAT(error, HasSubstr("away: connect to host away: refused"));
}

TEST_F(SshJobTest, SaysWhereProcessesMayBeLeft) {
  const std::string error = std::string(Job(id_, "away")->Stop().message());
  EXPECT_THAT(error, HasSubstr("may still run on these hosts"));
  EXPECT_THAT(error, HasSubstr("away: connect"));
}

TEST_F(SshJobTest, KnowsItsTasks) {
  std::string text;
  const absl::Status status = Job(id_)->ReadLogs({"worker-7"}, 5, &text);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"worker-7\"; allowed: coordinator, server-0, worker-0"));
}

TEST_F(SshJobTest, ADeploymentIsReadAsItWasSaved) {
  std::unique_ptr<SshJob> job = Job(id_);
  ASSERT_TRUE(SaveDeployment(job->deployment(), Path("run")).ok());
  absl::StatusOr<v1::Deployment> loaded = LoadDeployment(Path("run"));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->DebugString(), job->deployment().DebugString());
  std::ofstream(Path("run/deployment.textproto")) << "job_id: 'a; rm -rf /' tasks {}";
  EXPECT_TRUE(absl::IsInvalidArgument(LoadDeployment(Path("run")).status()));
  EXPECT_TRUE(absl::IsNotFound(LoadDeployment(Path("absent")).status()));
}

}  // namespace
}  // namespace rubato
