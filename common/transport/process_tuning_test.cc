#include "common/transport/process_tuning.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace rubato {
namespace {

TEST(ProcessTuningTest, HugePagesAreAskedForWhereTheSystemLeavesItToPrograms) {
  EXPECT_EQ(TunablesForHugePages("", "always [madvise] never"), "glibc.malloc.hugetlb=1");
  EXPECT_EQ(TunablesForHugePages("glibc.malloc.check=1", "always [madvise] never"),
            "glibc.malloc.check=1:glibc.malloc.hugetlb=1");
  EXPECT_EQ(TunablesForHugePages("glibc.malloc.hugetlb=0", "always [madvise] never"), std::nullopt);
  EXPECT_EQ(TunablesForHugePages("", "[always] madvise never"), std::nullopt);
  EXPECT_EQ(TunablesForHugePages("", "always madvise [never]"), std::nullopt);
  EXPECT_EQ(TunablesForHugePages("", ""), std::nullopt);
}

// For the test below, which runs it in a process of its own.
TEST(ProcessTuningTest, DISABLED_UsesHugePages) {
  UseHugePages();
  const char* const tunables = getenv("GLIBC_TUNABLES");
  EXPECT_STREQ(tunables, "glibc.malloc.hugetlb=1");
}

TEST(ProcessTuningTest, AProgramThatUsesHugePagesIsStartedAnewWithItsArguments) {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::string enabled(std::istreambuf_iterator<char>(file), {});
  const bool asks = TunablesForHugePages("", enabled).has_value();
  char name[] = "process_tuning_test", also[] = "--gtest_also_run_disabled_tests",
       filter[] = "--gtest_filter=*DISABLED_UsesHugePages";
  char* const argv[] = {name, also, filter, nullptr};
  char* const nothing[] = {nullptr};
  pid_t child;
  ASSERT_EQ(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv, nothing), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), asks ? 0 : 1);
}

TEST(ProcessTuningTest, ThreadsAndProcessesThatComeLaterAreBatchToo) {
  ScheduleAsBatch();
  EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
  std::thread([] { EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH); }).join();
  const pid_t child = fork();
  if (child == 0) _exit(sched_getscheduler(0));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), SCHED_BATCH);
}

TEST(ProcessTuningTest, WhoeverIsToAnswerIsNoBatch) {
  ScheduleAsBatch();
  std::thread answers([] {
    ScheduleToAnswer();
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  });
  answers.join();
  EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
}

TEST(ProcessTuningTest, TheNiceValueStays) {
  std::thread nice([] {
    ASSERT_EQ(setpriority(PRIO_PROCESS, 0, 3), 0);
    ScheduleAsBatch();
    EXPECT_EQ(getpriority(PRIO_PROCESS, 0), 3);
    ScheduleToAnswer();
    EXPECT_EQ(getpriority(PRIO_PROCESS, 0), 3);
  });
  nice.join();
}

}  // namespace
}  // namespace rubato
