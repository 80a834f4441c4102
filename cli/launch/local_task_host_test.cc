#include "cli/launch/local_task_host.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "cli/launch/job_supervisor.h"
#include "cli/launch/worker_cpus.h"
#include "common/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class LocalTaskHostTest : public ::testing::Test {
 protected:
  LocalTaskHostTest() : directory_(fs::path(::testing::TempDir()) / "local_task_host") {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    signals_ = *StopSignals::Create();
  }

  struct Job {
    LocalTaskHost::Options host;
    JobSupervisor::Options supervisor;
  };

  Job MakeJob(const std::string& behaviour) {
    std::string fake = (fs::current_path() / "cli/launch/testing/fake_task").string();
    Job job;
    job.host.binaries = {fake, fake, fake};
    job.host.config.set_name(behaviour);
    job.host.config.set_run_directory(directory_.string());
    job.host.config.mutable_cluster()->set_servers(2);
    job.host.config.mutable_cluster()->set_workers(2);
    job.host.config.mutable_cluster()->set_evaluators(1);
    job.host.config.mutable_cluster()->set_start_timeout_seconds(30);
    job.host.config.mutable_training()->set_device(v1::TrainingConfig::CPU);
    job.supervisor.contact_timeout = absl::Seconds(30);
    job.supervisor.grace = absl::Milliseconds(200);
    job.supervisor.poll_interval = absl::Milliseconds(10);
    job.supervisor.on_event = [this](absl::string_view text) { events_ += std::string(text) + "\n"; };
    return job;
  }

  absl::Status Run(Job job) {
    LocalTaskHost host(std::move(job.host), &clock_, signals_.get());
    JobSupervisor supervisor(std::move(job.supervisor), &host, &clock_, signals_.get());
    supervisor.Run(host.Start());
    EXPECT_TRUE(host.Finish().ok());
    return supervisor.Result(std::nullopt);
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

TEST_F(LocalTaskHostTest, RunsAJobToItsEndAndLeavesNoProcess) {
  Job job = MakeJob("ends");
  int64_t last_step = 0;
  job.supervisor.on_status = [&last_step](const v1::JobStatus& status) { last_step = status.step(); };
  absl::Status status = Run(job);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GE(last_step, 9);
  EXPECT_EQ(Children(), "");
  EXPECT_EQ(Log("worker-1.log"), "worker started\n");
  EXPECT_EQ(Log("server-1.log"), "server started\n");
  EXPECT_EQ(Log("evaluator-0.log"), "evaluator started\n");
  EXPECT_TRUE(fs::exists(directory_ / "job.textproto"));
  EXPECT_EQ(events_, "");
}

TEST_F(LocalTaskHostTest, TasksTakeTurnsWithTheMachinesGpus) {
  Job job = MakeJob("ends");
  job.host.config.mutable_training()->set_device(v1::TrainingConfig::CUDA);
  job.host.config.mutable_training()->set_gpus(1);
  const absl::Status status = Run(job);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Log("worker-0.log"), "worker started with training.device_index=0\n");
  EXPECT_EQ(Log("worker-1.log"), "worker started with training.device_index=1\n");
  EXPECT_EQ(Log("evaluator-0.log"), "evaluator started with training.device_index=0\n");
  EXPECT_EQ(Log("server-0.log"), "server started\n");
}

TEST_F(LocalTaskHostTest, RefusesAMachineWithTooFewGpus) {
  Job job = MakeJob("ends");
  job.host.config.mutable_training()->set_device(v1::TrainingConfig::CUDA);
  job.host.config.mutable_training()->set_gpus(4);
  const absl::Status status = Run(job);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "this machine cannot be used: it has 2 of the 4 GPUs that training.gpus takes");
  EXPECT_EQ(Log("worker-0.log"), "");
}

TEST_F(LocalTaskHostTest, ReportsTheJobsErrorWhenItFails) {
  absl::Status status = Run(MakeJob("fails"));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("its parameters are lost"));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalTaskHostTest, ReportsADeadWorkerWithItsLastLines) {
  absl::Status status = Run(MakeJob("worker-dies"));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(events_, HasSubstr("worker 0 ended with exit status 7"));
  EXPECT_THAT(events_, HasSubstr("worker-1.log:\n    worker started\n    the disk is full"));
}

TEST_F(LocalTaskHostTest, ATaskThatEndsBeforeTheJobBeginsStopsTheJobAtOnce) {
  absl::Status status = Run(MakeJob("worker-cannot-begin"));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ended before the job could begin\nworker"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker started\n    the disk is full"));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalTaskHostTest, StartsAKilledEvaluatorAgain) {
  absl::Status status = Run(MakeJob("evaluator-dies"));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(events_, HasSubstr("evaluator 0 was killed by signal 9; it is started again\n"));
  EXPECT_THAT(events_, HasSubstr("evaluator 0 was killed by signal 9; it is started again in 1s\n"));
  EXPECT_EQ(Log("evaluator-0.log"), "evaluator started\nevaluator started\nevaluator started\nevaluator started\n");
}

TEST_F(LocalTaskHostTest, StartsAKilledCoordinatorAgainAtItsAddress) {
  absl::Status status = Run(MakeJob("coordinator-dies"));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(events_, "the coordinator was killed by signal 9; it is started again\n");
  std::stringstream address;
  address << std::ifstream(directory_ / "coordinator.address").rdbuf();
  EXPECT_EQ(Log("coordinator.log"), "goes on at " + address.str());
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalTaskHostTest, ResumesAJob) {
  Job job = MakeJob("ends");
  job.host.resume = true;
  absl::Status status = Run(std::move(job));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Log("coordinator.log"), "goes on at 127.0.0.1:0\n");
}

TEST_F(LocalTaskHostTest, AnEvaluatorWithBadDataStopsTheJobAtOnce) {
  absl::Status status = Run(MakeJob("evaluator-refuses"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("evaluator 0 cannot evaluate\nevaluator 0 ended with exit status 2"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("labels: truncated"));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalTaskHostTest, AKilledServerIsNamedBeforeTheCoordinatorsExitStatus) {
  const absl::Status status = Run(MakeJob("server-dies"));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), StartsWith("server 1 ended with signal 9 (Killed); the end of "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\nThen the job failed: server 1: "));
  EXPECT_THAT(events_, StartsWith("server 1 ended with signal 9 (Killed)"));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalTaskHostTest, ASignalStopsTheJob) {
  Job job = MakeJob("runs");
  job.supervisor.on_status = [](const v1::JobStatus& status) {
    if (status.step() == 3) kill(getpid(), SIGINT);
  };
  absl::Status status = Run(job);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(Log("coordinator.log"), HasSubstr("stop: stopped by a signal"));
  EXPECT_THAT(events_, Not(HasSubstr("ended with")));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalTaskHostTest, KillsWhatDoesNotStop) {
  Job job = MakeJob("stubborn");
  job.supervisor.on_status = [](const v1::JobStatus& status) {
    if (status.step() == 3) kill(getpid(), SIGTERM);
  };
  EXPECT_EQ(Run(job).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalTaskHostTest, TheTimeLimitStopsTheJob) {
  Job job = MakeJob("runs");
  job.supervisor.time_limit = absl::Milliseconds(300);
  absl::Status status = Run(job);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("300ms"));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalTaskHostTest, ACoordinatorThatDoesNotAnswerEndsTheJob) {
  Job job = MakeJob("silent");
  job.supervisor.contact_timeout = absl::Seconds(1);
  absl::Status status = Run(job);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has not answered for 1s"));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalTaskHostTest, ACoordinatorThatDoesNotListenEndsTheJob) {
  Job job = MakeJob("mute");
  job.host.config.mutable_cluster()->set_start_timeout_seconds(0.1);
  absl::Status status = Run(job);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("did not listen within 100ms"));
  EXPECT_EQ(Children(), "");
}

TEST_F(LocalTaskHostTest, ARefusedConfigIsInvalidWithTheCoordinatorsWords) {
  absl::Status status = Run(MakeJob("config-refused"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("allowed: letters"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("exit status 2"));
}

TEST_F(LocalTaskHostTest, AProgramThatIsMissingIsNamed) {
  Job job = MakeJob("runs");
  job.host.binaries.worker = "/nonexistent/worker";
  absl::Status status = Run(job);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/worker"));
  EXPECT_EQ(Children(), "");
}

// The workers are a shell's script.
class ClientsOnThisMachineTest : public LocalTaskHostTest {
 protected:
  Job MakeClientsJob(const std::string& behaviour, const std::string& script) {
    Job job = MakeJob(behaviour);
    job.host.binaries.worker = "";
    job.host.config.mutable_cluster()->set_evaluators(0);
    job.host.clients = LocalTaskHost::Clients{};
    job.host.clients->command = WorkerCommand{.argv = {"/bin/sh", "-c", script}};
    job.host.clients->show_output = true;
    job.supervisor.clients = 2;
    job.supervisor.on_output = [this](absl::string_view line) { lines_.emplace_back(line); };
    return job;
  }

  std::vector<std::string> lines_;
};

TEST_F(ClientsOnThisMachineTest, KnowWhoTheyAreAndAreShownWithTheirRank) {
  Job job = MakeClientsJob("ends", "echo rank $RUBATO_RANK of $RUBATO_SIZE at ${RUBATO_COORDINATOR%:*}; echo err >&2");
  const absl::Status status = Run(std::move(job));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(lines_, UnorderedElementsAre("[0] rank 0 of 2 at 127.0.0.1", "[0] err", "[1] rank 1 of 2 at 127.0.0.1",
                                           "[1] err"));
  EXPECT_EQ(Log("worker-1.log"), "rank 1 of 2 at 127.0.0.1\nerr\n");
  EXPECT_EQ(Children(), "");
}

TEST_F(ClientsOnThisMachineTest, StayOnOneCpuEachWhereTheyFillTheMachine) {
  std::vector<int> cpus = AllowedCpus();
  if (cpus.size() < 2) GTEST_SKIP() << "two CPUs are needed";
  cpu_set_t before, two;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpus.resize(2);
  CPU_ZERO(&two);
  for (int cpu : cpus) CPU_SET(cpu, &two);
  ASSERT_EQ(sched_setaffinity(0, sizeof(two), &two), 0);
  const std::string show = "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status | tr ',' '-'";
  for (const bool bind : {true, false}) {
    lines_.clear();
    Job job = MakeClientsJob("ends", show);
    job.host.bind_workers = bind;
    job.host.clients->command->threads = 1;
    EXPECT_TRUE(Run(std::move(job)).ok());
    const std::string both = absl::StrCat(cpus[0], "-", cpus[1]);
    EXPECT_THAT(lines_, UnorderedElementsAre(absl::StrCat("[0] ", bind ? absl::StrCat(cpus[0]) : both),
                                             absl::StrCat("[1] ", bind ? absl::StrCat(cpus[1]) : both)));
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST_F(ClientsOnThisMachineTest, ALineIsNewsAtOnce) {
  Job job = MakeClientsJob("runs", "sleep 0.1; echo here; exec sleep 60");
  LocalTaskHost host(std::move(job.host), &clock_, signals_.get());
  ASSERT_TRUE(host.Start().ok());
  while (lines_.size() < 2) {
    // Much longer than the test may take.
    host.AwaitEvent(signals_->descriptor(), absl::Minutes(10));
    for (const std::string& line : host.Watch().output) lines_.push_back(line);
  }
  EXPECT_THAT(lines_, UnorderedElementsAre("[0] here", "[1] here"));
  host.Kill();
  EXPECT_TRUE(host.Finish().ok());
}

TEST_F(ClientsOnThisMachineTest, AFailureIsShownWithRankStatusAndLastLines) {
  Job job = MakeClientsJob("runs", "if [ $RUBATO_RANK = 1 ]; then echo no such data; exit 3; fi; exec sleep 60");
  const absl::Status status = Run(std::move(job));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), StartsWith("worker 1 ended with exit status 3; "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker-1.log:\n    no such data"));
  EXPECT_EQ(Children(), "");
}

TEST_F(ClientsOnThisMachineTest, OneThatIsKilledIsStartedAgainWithItsRank) {
  const std::string mark = (directory_ / "mark").string();
  Job job = MakeClientsJob("runs", "[ $RUBATO_RANK = 1 ] || exec sleep 60; [ -e " + mark + " ] || { touch " + mark +
                                       "; kill -9 $$; }; echo again as $RUBATO_RANK; exec sleep 60");
  job.supervisor.on_output = [this](absl::string_view line) {
    lines_.emplace_back(line);
    kill(getpid(), SIGINT);
  };
  EXPECT_EQ(Run(std::move(job)).code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(lines_, ElementsAre("[1] again as 1"));
  EXPECT_THAT(events_, HasSubstr("worker 1 was killed by signal 9; it is started again\n"));
}

TEST_F(ClientsOnThisMachineTest, MayBeStartedByOthersWhoReachTheCoordinatorByAName) {
  Job job = MakeClientsJob("ends", "");
  job.host.clients->command.reset();
  job.host.clients->host = "localhost";
  job.supervisor.clients = 0;
  LocalTaskHost host(std::move(job.host), &clock_, signals_.get());
  JobSupervisor supervisor(std::move(job.supervisor), &host, &clock_, signals_.get());
  const absl::Status started = host.Start();
  ASSERT_TRUE(started.ok()) << started;
  EXPECT_THAT(host.coordinator(), StartsWith("localhost:"));
  EXPECT_FALSE(fs::exists(directory_ / "logs/worker-0.log"));
  EXPECT_TRUE(fs::exists(directory_ / "logs/server-1.log"));
  supervisor.Run(started);
  EXPECT_TRUE(host.Finish().ok());
  EXPECT_TRUE(supervisor.Result(std::nullopt).ok());
}

}  // namespace
}  // namespace rubato
