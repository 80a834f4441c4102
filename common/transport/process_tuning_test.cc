#include "common/transport/process_tuning.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace rubato {
namespace {

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
