#include "cli/deploy/ssh_task_host.h"

#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/deploy/testing/folder_hosts.h"
#include "cli/launch/local_program.h"
#include "common/storage/file.h"
#include "common/task.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SshTaskHostTest : public FolderHosts {
 protected:
  SshTaskHost::Options Launching() {
    config_.set_run_directory(Path("run"));
    SshTaskHost::Options options;
    options.run_directory = Path("run");
    options.launch = SshTaskHost::Launch{config_, package_, std::nullopt, Needs()};
    options.on_step = [this](absl::string_view text) { steps_.emplace_back(text); };
    return options;
  }

  // The ends that Watch has told of, once they are so many; looks at least once.
  std::vector<std::string> Ends(SshTaskHost* host, size_t count) {
    std::vector<std::string> ends;
    const absl::Time deadline = clock_.Now() + absl::Seconds(20);
    do {
      host->AwaitEvent(signals_->descriptor(), absl::Milliseconds(20));
      TaskHost::News news = host->Watch();
      for (const TaskHost::TaskEnd& end : news.ended) {
        ends.push_back(absl::StrCat(TaskName(end.task), ": ", end.result.Describe()));
      }
      for (const std::string& note : news.notes) notes_.push_back(note);
    } while (ends.size() < count && clock_.Now() < deadline);
    return ends;
  }

  // Kills what a task's shell has started.
  void KillTask(SshJob* job, const std::string& host, const std::string& name) {
    const std::string running = absl::StrCat(host, ": ", name, " running ");
    const std::string text = TasksWith(job, running);
    const size_t begin = text.find(running) + running.size();
    const std::string shell = text.substr(begin, text.find('\n', begin) - begin);
    EXPECT_TRUE(RunProgram({"pkill", "-KILL", "-P", shell}).ok());
  }

  std::vector<std::string> steps_;
  std::vector<std::string> notes_;
};

TEST_F(SshTaskHostTest, StartsAJobTellsOfItsEndsAndLeavesNoProcess) {
  std::unique_ptr<SshJob> job = Job(id_);
  SshTaskHost host(Launching(), job.get(), &clock_);
  ASSERT_TRUE(host.Start().ok());
  EXPECT_THAT(steps_,
              ElementsAre("Checking 2 hosts", "Copying what they do not have", absl::StrCat("Starting job ", id_)));
  EXPECT_THAT(Ends(&host, 1), ElementsAre("worker 0: exit status 3"));
  EXPECT_TRUE(host.AnyLeft());
  v1::TaskId worker;
  worker.set_role(v1::TaskId::WORKER);
  EXPECT_EQ(host.Describe(worker), "worker 0 on b");
  EXPECT_THAT(host.LogTail(worker), HasSubstr("; the end of its log:\n    == worker-0\n    --config"));
  EXPECT_EQ(host.GetStatus(absl::Milliseconds(100)).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(host.Finish().ok());
  EXPECT_FALSE(host.AnyLeft());
  EXPECT_TRUE(FileExists(Path("run/logs/server-0.log")));
  EXPECT_TRUE(FileExists(Path("run/deployment.textproto")));
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(SshTaskHostTest, EachHostGetsTheCredentialsOfItsOwnTasks) {
  std::unique_ptr<SshJob> job = Job(id_);
  SshTaskHost host(Launching(), job.get(), &clock_);
  ASSERT_TRUE(host.Start().ok());
  const std::string run = absl::StrCat("jobs/", id_, "/run/credentials");
  EXPECT_THAT(*ListDirectory(JoinPath(job->deployment().hosts().hosts(0).directory(), run)),
              ElementsAre("ca.crt", "coordinator-0.crt", "coordinator-0.key", "server-0.crt", "server-0.key"));
  EXPECT_THAT(*ListDirectory(JoinPath(Path("b"), run)), ElementsAre("ca.crt", "worker-0.crt", "worker-0.key"));
  struct stat facts = {};
  ASSERT_EQ(stat(JoinPath(Path("b"), JoinPath(run, "worker-0.key")).c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600u);
  EXPECT_TRUE(host.Finish().ok());
  // They do not come back, and nothing else is left here.
  EXPECT_THAT(*ListDirectory(Path("run/credentials")),
              ElementsAre("ca.crt", "ca.key", "coordinator-0.crt", "coordinator-0.key", "operator.crt", "operator.key",
                          "server-0.crt", "server-0.key", "worker-0.crt", "worker-0.key"));
}

TEST_F(SshTaskHostTest, EndsOfAHostAreToldInTheirOrderAndOnce) {
  std::unique_ptr<SshJob> job = Job(id_);
  SshTaskHost host(Launching(), job.get(), &clock_);
  ASSERT_TRUE(host.Start().ok());
  // Otherwise they are started again.
  std::ofstream(JoinPath(job->deployment().hosts().hosts(0).directory(), absl::StrCat("jobs/", id_, "/stopped"))) << "";
  for (const char* name : {"server-0", "coordinator"}) {
    KillTask(job.get(), "a", name);
    EXPECT_THAT(TasksWith(job.get(), absl::StrCat(name, " ended 137")), HasSubstr(absl::StrCat(name, " ended 137")));
  }
  std::vector<std::string> ends = Ends(&host, 3);
  std::erase(ends, "worker 0: exit status 3");  // On the other host.
  EXPECT_THAT(ends, ElementsAre("server 0: signal 9 (Killed)", "coordinator: signal 9 (Killed)"));
  EXPECT_TRUE(host.Finish().ok());
}

TEST_F(SshTaskHostTest, AKilledTaskIsStartedAgainOnItsHost) {
  std::unique_ptr<SshJob> job = Job(id_);
  SshTaskHost host(Launching(), job.get(), &clock_);
  ASSERT_TRUE(host.Start().ok());
  KillTask(job.get(), "a", "coordinator");
  KillTask(job.get(), "a", "server-0");
  const absl::Time deadline = clock_.Now() + absl::Seconds(20);
  while (notes_.size() < 2 && clock_.Now() < deadline) Ends(&host, 0);
  EXPECT_THAT(notes_, ElementsAre("the coordinator on a was killed by signal 9; it is started again",
                                  "server 0 on a was killed by signal 9; it is started again"));
  EXPECT_THAT(job->DescribeTasks(), HasSubstr("a: server-0 running"));
  v1::TaskId coordinator;
  coordinator.set_role(v1::TaskId::COORDINATOR);
  // The second time at the port of the first.
  EXPECT_THAT(host.LogTail(coordinator), HasSubstr("--listen [::]:7071 "));
  EXPECT_THAT(host.LogTail(coordinator), HasSubstr("--listen [::]:0 "));
  EXPECT_TRUE(host.Finish().ok());
}

TEST_F(SshTaskHostTest, ATaskThatHasFailedIsStartedAgainWhenItIsAsked) {
  // So that what watched the host's only task is still ending when the task is started again.
  std::ofstream(Path("linger")) << 0.2;
  std::unique_ptr<SshJob> job = Job(id_);
  SshTaskHost host(Launching(), job.get(), &clock_);
  ASSERT_TRUE(host.Start().ok());
  EXPECT_THAT(Ends(&host, 1), ElementsAre("worker 0: exit status 3"));
  v1::TaskId worker;
  worker.set_role(v1::TaskId::WORKER);
  const absl::Status again = host.StartAgain(worker);
  EXPECT_TRUE(again.ok()) << again;
  EXPECT_THAT(Ends(&host, 1), ElementsAre("worker 0: exit status 3"));
  EXPECT_TRUE(host.Finish().ok());
  EXPECT_EQ(host.StartAgain(worker).code(), absl::StatusCode::kUnavailable);
}

TEST_F(SshTaskHostTest, AJobGoesOnWithWhatItHasLeftOnItsHosts) {
  std::unique_ptr<SshJob> job = Job(id_);
  SshTaskHost::Options resuming = Launching();
  resuming.resume = true;
  EXPECT_THAT(std::string(SshTaskHost(resuming, job.get(), &clock_).Start().message()), HasSubstr("holds no journal"));
  ASSERT_TRUE(SshTaskHost(Launching(), job.get(), &clock_).Start().ok());
  std::ofstream(JoinPath(job->deployment().hosts().hosts(0).directory(), absl::StrCat("jobs/", id_, "/run/journal")))
      << "x";
  SshTaskHost host(resuming, job.get(), &clock_);
  const absl::Status started = host.Start();
  EXPECT_TRUE(started.ok()) << started;
  EXPECT_THAT(Ends(&host, 1), ElementsAre("worker 0: exit status 3"));
  EXPECT_TRUE(host.Finish().ok());
  EXPECT_TRUE(FileExists(Path("run/journal")));
}

TEST_F(SshTaskHostTest, AJobThatWasStartedBeforeIsFollowed) {
  std::unique_ptr<SshJob> job = Job(id_);
  ASSERT_TRUE(SshTaskHost(Launching(), job.get(), &clock_).Start().ok());
  steps_.clear();
  SshTaskHost host({.run_directory = Path("run")}, job.get(), &clock_);
  EXPECT_TRUE(host.Start().ok());
  EXPECT_THAT(steps_, IsEmpty());
  EXPECT_THAT(Ends(&host, 1), ElementsAre("worker 0: exit status 3"));
  host.Terminate();
  EXPECT_FALSE(host.AnyLeft());
  EXPECT_TRUE(host.Finish().ok());
}

TEST_F(SshTaskHostTest, NothingIsLeftOfAJobThatWasNotBegun) {
  std::unique_ptr<SshJob> job = Job(id_, "away");
  SshTaskHost host(Launching(), job.get(), &clock_);
  EXPECT_EQ(host.Start().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(host.AnyLeft());
  EXPECT_TRUE(host.Finish().ok());
  EXPECT_FALSE(FileExists(Path("run/deployment.textproto")));
}

}  // namespace
}  // namespace rubato
