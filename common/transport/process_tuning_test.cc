#include "common/transport/process_tuning.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace rubato {
namespace {

TEST(ProcessTuningTest, ThreadsAndProcessesThatComeLaterAreBatchToo) {
  TuneProcess();
  EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
  std::thread([] { EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH); }).join();
  const pid_t child = fork();
  if (child == 0) _exit(sched_getscheduler(0));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), SCHED_BATCH);
}

}  // namespace
}  // namespace rubato
