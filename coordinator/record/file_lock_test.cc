#include "coordinator/record/file_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "absl/strings/str_cat.h"

namespace rubato::coordinator {
namespace {

TEST(FileLockTest, OneHasItAtATimeAndTheOtherLearnsWho) {
  const std::string path = testing::TempDir() + "/one_has_it";
  auto first = FileLock::Acquire(path);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = FileLock::Acquire(path).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(second.message().find(absl::StrCat("process ", getpid())), 0u) << second;
  first->reset();
  EXPECT_TRUE(FileLock::Acquire(path).ok());
}

TEST(FileLockTest, AProcessThatIsKilledGivesItBack) {
  const std::string path = testing::TempDir() + "/killed";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto lock = FileLock::Acquire(path);
    (void)!write(ready[1], lock.ok() ? "y" : "n", 1);
    for (;;) pause();
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  const absl::Status status = FileLock::Acquire(path).status();
  EXPECT_EQ(status.message().find(absl::StrCat("process ", child)), 0u) << status;
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(FileLock::Acquire(path).ok());
}

TEST(FileLockTest, APathThatCannotBeMadeIsNamed) {
  const absl::Status status = FileLock::Acquire("/no/such/lock").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("/no/such/lock"), absl::string_view::npos);
}

}  // namespace
}  // namespace rubato::coordinator
