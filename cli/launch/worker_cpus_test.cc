#include "cli/launch/worker_cpus.h"

#include <sched.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WorkerCpusTest, WorkersThatFillTheMachineHaveOneEach) {
  EXPECT_THAT(CpuOfEachWorker({0, 1}, 2, 1), ElementsAre(0, 1));
  EXPECT_THAT(CpuOfEachWorker({2, 3, 7}, 3, 1), ElementsAre(2, 3, 7));
}

TEST(WorkerCpusTest, OthersRunOnAny) {
  // One is free.
  EXPECT_THAT(CpuOfEachWorker({0, 1, 2}, 2, 1), IsEmpty());
  // They take turns.
  EXPECT_THAT(CpuOfEachWorker({0, 1}, 3, 1), IsEmpty());
  EXPECT_THAT(CpuOfEachWorker({0, 1}, 2, 2), IsEmpty());
  // It is not known how many threads they have.
  EXPECT_THAT(CpuOfEachWorker({0, 1}, 2, 0), IsEmpty());
  EXPECT_THAT(CpuOfEachWorker({0}, 1, 1), IsEmpty());
  EXPECT_THAT(CpuOfEachWorker({}, 0, 1), IsEmpty());
}

TEST(WorkerCpusTest, KnowsWhatThisProcessMayUse) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  const std::vector<int> all = AllowedCpus();
  ASSERT_EQ(all.size(), static_cast<size_t>(CPU_COUNT(&before)));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(all.back(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_THAT(AllowedCpus(), ElementsAre(all.back()));
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

}  // namespace
}  // namespace rubato
