#include "cli/launch/child_process.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "cli/launch/worker_cpus.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;

std::string TempPath(const std::string& name) { return ::testing::TempDir() + "/" + name; }

std::unique_ptr<ChildProcess> Shell(const std::string& script, const std::string& log) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child = ChildProcess::Start({"/bin/sh", "-c", script}, log);
  EXPECT_TRUE(child.ok()) << child.status();
  return *std::move(child);
}

ExitResult WaitFor(ChildProcess& child) {
  struct pollfd event = {child.descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&event, 1, 10000), 1);
  return child.Poll().value_or(ExitResult{-1, 0});
}

TEST(ChildProcessTest, ReportsTheExitStatusAndKeepsTheOutput) {
  std::string log = TempPath("status.log");
  auto child = Shell("echo out; echo err >&2; exit 3", log);
  ExitResult result = WaitFor(*child);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.Describe(), "exit status 3");
  EXPECT_EQ(LastLines(log, 5), "out\nerr\n");
}

TEST(ChildProcessTest, HasTheCallersEnvironmentAndMore) {
  const std::string log = TempPath("environment.log");
  setenv("RUBATO_TEST_KEPT", "kept", 1);
  setenv("RUBATO_TEST_CHANGED", "before", 1);
  auto child = ChildProcess::Start({"/bin/sh", "-c", "echo $RUBATO_TEST_KEPT $RUBATO_TEST_CHANGED $RUBATO_TEST_NEW"},
                                   {.output = log}, {"RUBATO_TEST_CHANGED=after", "RUBATO_TEST_NEW=a=b"});
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_TRUE(WaitFor(**child).ok());
  EXPECT_EQ(LastLines(log, 5), "kept after a=b\n");
}

TEST(ChildProcessTest, StaysOnItsCpu) {
  const int last = AllowedCpus().back();
  const std::string log = TempPath("cpu.log");
  auto child = ChildProcess::Start({"/bin/sh", "-c", "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status"},
                                   {.output = log}, {}, last);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_TRUE(WaitFor(**child).ok());
  EXPECT_EQ(LastLines(log, 5), std::to_string(last) + "\n");
}

TEST(ChildProcessTest, ReportsTheSignal) {
  auto child = Shell("kill -9 $$", TempPath("signal.log"));
  EXPECT_THAT(WaitFor(*child).Describe(), HasSubstr("signal 9"));
}

TEST(ChildProcessTest, IsAProcessGroupOfItsOwnAndTakesSignalsThatTheCallerBlocks) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  auto child = Shell("exec sleep 60", TempPath("group.log"));
  EXPECT_EQ(getpgid(child->pid()), child->pid());
  child->Signal(SIGTERM);
  EXPECT_EQ(WaitFor(*child).signal, SIGTERM);
  sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
}

TEST(ChildProcessTest, IsKilledWithItsObject) {
  pid_t pid = 0;
  {
    auto child = Shell("trap '' TERM; sleep 60", TempPath("destroyed.log"));
    pid = child->pid();
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(ChildProcessTest, DiesWithTheProcessThatStartedIt) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t launcher = fork();
  if (launcher == 0) {
    auto child = ChildProcess::Start({"/bin/sleep", "60"}, TempPath("orphan.log"));
    pid_t pid = child.ok() ? (*child)->pid() : 0;
    ssize_t ignored = write(ends[1], &pid, sizeof(pid));
    static_cast<void>(ignored);
    kill(getpid(), SIGKILL);
  }
  pid_t orphan = 0;
  ASSERT_EQ(read(ends[0], &orphan, sizeof(orphan)), static_cast<ssize_t>(sizeof(orphan)));
  ASSERT_GT(orphan, 0);
  waitpid(launcher, nullptr, 0);
  // Whoever adopted the orphan reaps it in its own time; a zombie has no executable any more.
  std::string link = "/proc/" + std::to_string(orphan) + "/exe";
  char target[256];
  int attempts = 0;
  while (readlink(link.c_str(), target, sizeof(target)) > 0 && ++attempts < 1000000) {
  }
  EXPECT_LT(attempts, 1000000);
  close(ends[0]);
  close(ends[1]);
}

TEST(ChildProcessTest, NamesAProgramThatCannotBeExecuted) {
  absl::Status status = ChildProcess::Start({"/nonexistent/server"}, TempPath("missing.log")).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/server: No such file"));
}

TEST(ChildProcessTest, NamesALogFileThatCannotBeOpened) {
  absl::Status status = ChildProcess::Start({"/bin/true"}, "/nonexistent/a.log").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/a.log"));
}

TEST(LastLinesTest, GivesTheEndOfAFile) {
  std::string path = TempPath("lines.txt");
  std::ofstream(path) << "one\ntwo\n\nfour";
  EXPECT_EQ(LastLines(path, 1), "four\n");
  EXPECT_EQ(LastLines(path, 3), "two\n\nfour\n");
  EXPECT_EQ(LastLines(path, 9), "one\ntwo\n\nfour\n");
  EXPECT_EQ(LastLines(TempPath("absent.txt"), 9), "");
}

}  // namespace
}  // namespace rubato
