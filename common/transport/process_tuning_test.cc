#include "common/transport/process_tuning.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

namespace rubato {
namespace {

std::string TextOf(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ProcessTuningTest, HugePagesAreAskedForWhereTheSystemLeavesItToPrograms) {
  EXPECT_EQ(TunablesForHugePages("", "always [madvise] never"), "glibc.malloc.hugetlb=1");
  EXPECT_EQ(TunablesForHugePages("glibc.malloc.check=1", "always [madvise] never"),
            "glibc.malloc.check=1:glibc.malloc.hugetlb=1");
  EXPECT_EQ(TunablesForHugePages("glibc.malloc.hugetlb=0", "always [madvise] never"), std::nullopt);
  EXPECT_EQ(TunablesForHugePages("", "[always] madvise never"), std::nullopt);
  EXPECT_EQ(TunablesForHugePages("", "always madvise [never]"), std::nullopt);
  EXPECT_EQ(TunablesForHugePages("", ""), std::nullopt);
}

TEST(ProcessTuningTest, AProgramThatUsesHugePagesIsStartedAnewWithItsArguments) {
  const std::optional<std::string> tunables =
      TunablesForHugePages("glibc.malloc.check=1", TextOf("/sys/kernel/mm/transparent_hugepage/enabled"));
  const std::string program = "common/transport/testing/use_huge_pages";
  const std::string command = "GLIBC_TUNABLES=glibc.malloc.check=1 " + program + " --one '' 'two words'";
  FILE* const output = popen(command.c_str(), "r");
  ASSERT_NE(output, nullptr);
  std::string text;
  for (int c = getc(output); c != EOF; c = getc(output)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(output), 0);
  EXPECT_EQ(text, tunables.value_or("glibc.malloc.check=1") + "\n" + program + "\n--one\n\ntwo words\n");
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
