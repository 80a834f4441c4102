#include "cli/launch/local_cluster.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class LocalClusterTest : public ::testing::Test {
 protected:
  LocalClusterTest() : directory_(fs::path(::testing::TempDir()) / "local_cluster") {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    signals_ = *StopSignals::Create();
  }

  LocalCluster::Options Job(const std::string& behaviour) {
    std::string fake = (fs::current_path() / "cli/launch/testing/fake_task").string();
    LocalCluster::Options options;
    options.binaries = {fake, fake, fake};
    options.config.set_name(behaviour);
    options.config.set_run_directory(directory_.string());
    options.config.mutable_cluster()->set_servers(2);
    options.config.mutable_cluster()->set_workers(2);
    options.config.mutable_cluster()->set_evaluators(1);
    options.config.mutable_cluster()->set_start_timeout_seconds(30);
    options.config.mutable_training()->set_device(v1::TrainingConfig::CPU);
    options.patience = absl::Milliseconds(200);
    options.poll_interval = absl::Milliseconds(10);
    options.on_event = [this](absl::string_view text) { events_ += std::string(text) + "\n"; };
    return options;
  }

  absl::Status Run(LocalCluster::Options options) {
    return LocalCluster(std::move(options), &clock_, signals_.get()).Run();
  }

  std::string Log(const std::string& name) {
    std::stringstream text;
    text << std::ifstream(directory_ / "logs" / name).rdbuf();
    return text.str();
  }

  // Processes of this test that are left; the kernel lists a process's children.
  std::string Children() {
    std::string pid = std::to_string(getpid());
    std::stringstream text;
    text << std::ifstream("/proc/" + pid + "/task/" + pid + "/children").rdbuf();
    return text.str();
  }

  const fs::path directory_;
  RealClock clock_;
  std::unique_ptr<StopSignals> signals_;
  std::string events_;
};

TEST_F(LocalClusterTest, RunsAJobToItsEndAndLeavesNoProcess) {
  LocalCluster::Options options = Job("ends");
  int64_t last_step = 0;
  options.on_status = [&last_step](const v1::JobStatus& status) { last_step = status.step(); };
  absl::Status status = Run(options);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GE(last_step, 9);
  EXPECT_EQ(Children(), "");
  EXPECT_EQ(Log("worker-1.log"), "worker started\n");
  EXPECT_EQ(Log("server-1.log"), "server started\n");
  EXPECT_EQ(Log("evaluator-0.log"), "evaluator started\n");
  EXPECT_TRUE(fs::exists(directory_ / "job.textproto"));
  EXPECT_EQ(events_, "");
}

TEST_F(LocalClusterTest, TasksTakeTurnsWithTheMachinesCards) {
  LocalCluster::Options options = Job("ends");
  options.config.mutable_training()->set_device(v1::TrainingConfig::CUDA);
  options.config.mutable_training()->set_cards(1);
  const absl::Status status = Run(options);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Log("worker-0.log"), "worker started with training.device_index=0\n");
  EXPECT_EQ(Log("worker-1.log"), "worker started with training.device_index=1\n");
  EXPECT_EQ(Log("evaluator-0.log"), "evaluator started with training.device_index=0\n");
  EXPECT_EQ(Log("server-0.log"), "server started\n");
}

TEST_F(LocalClusterTest, RefusesAMachineWithTooFewCards) {
  LocalCluster::Options options = Job("ends");
  options.config.mutable_training()->set_device(v1::TrainingConfig::CUDA);
  options.config.mutable_training()->set_cards(4);
  const absl::Status status = Run(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "this machine cannot be used: it has 2 of the 4 cards that training.cards takes");
  EXPECT_EQ(Log("worker-0.log"), "");
}

TEST_F(LocalClusterTest, ReportsTheJobsErrorWhenItFails) {
  absl::Status status = Run(Job("fails"));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("its parameters are lost"));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalClusterTest, ReportsADeadWorkerWithItsLastLines) {
  absl::Status status = Run(Job("worker-dies"));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(events_, HasSubstr("worker 0 ended with exit status 7"));
  EXPECT_THAT(events_, HasSubstr("worker-1.log:\n    worker started\n    the disk is full"));
}

TEST_F(LocalClusterTest, ATaskThatEndsBeforeTheJobBeginsStopsTheJobAtOnce) {
  absl::Status status = Run(Job("worker-cannot-begin"));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ended before the job could begin\nworker"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker started\n    the disk is full"));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalClusterTest, StartsAKilledEvaluatorAgainThreeTimes) {
  absl::Status status = Run(Job("evaluator-dies"));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(events_, HasSubstr("evaluator 0 is started again (3 of at most 3 times)"));
  EXPECT_EQ(Log("evaluator-0.log"), "evaluator started\nevaluator started\nevaluator started\nevaluator started\n");
}

TEST_F(LocalClusterTest, AnEvaluatorWithBadDataStopsTheJobAtOnce) {
  absl::Status status = Run(Job("evaluator-refuses"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("evaluator 0 cannot evaluate\nevaluator 0 ended with exit status 2"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("labels: truncated"));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalClusterTest, ASignalStopsTheJob) {
  LocalCluster::Options options = Job("runs");
  options.on_status = [](const v1::JobStatus& status) {
    if (status.step() == 3) kill(getpid(), SIGINT);
  };
  absl::Status status = Run(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(Log("coordinator.log"), HasSubstr("stop: stopped by a signal"));
  EXPECT_THAT(events_, Not(HasSubstr("ended with")));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalClusterTest, KillsWhatDoesNotStop) {
  LocalCluster::Options options = Job("stubborn");
  options.on_status = [](const v1::JobStatus& status) {
    if (status.step() == 3) kill(getpid(), SIGTERM);
  };
  EXPECT_EQ(Run(options).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalClusterTest, TheTimeLimitStopsTheJob) {
  LocalCluster::Options options = Job("runs");
  options.time_limit = absl::Milliseconds(300);
  absl::Status status = Run(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("300ms"));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalClusterTest, ACoordinatorThatDoesNotAnswerEndsTheJob) {
  LocalCluster::Options options = Job("silent");
  options.config.mutable_cluster()->set_start_timeout_seconds(1);
  absl::Status status = Run(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has not answered for 1s"));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalClusterTest, ACoordinatorThatDoesNotListenEndsTheJob) {
  LocalCluster::Options options = Job("mute");
  options.config.mutable_cluster()->set_start_timeout_seconds(0.1);
  absl::Status status = Run(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("did not listen within 100ms"));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalClusterTest, ARefusedConfigIsInvalidWithTheCoordinatorsWords) {
  absl::Status status = Run(Job("config-refused"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("allowed: letters"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("exit status 2"));
}

TEST_F(LocalClusterTest, AProgramThatIsMissingIsNamed) {
  LocalCluster::Options options = Job("runs");
  options.binaries.worker = "/nonexistent/worker";
  absl::Status status = Run(options);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/worker"));
  EXPECT_EQ(Children(), "");
}

}  // namespace
}  // namespace rubato
