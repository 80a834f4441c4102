#include "coordinator/rules/plan_watch.h"

#include <gtest/gtest.h>

namespace rubato::coordinator {
namespace {

class PlanWatchTest : public testing::Test {
 protected:
  PlanWatchTest() {
    plan_.set_generation(2);
    for (uint32_t i = 0; i < 2; ++i) {
      v1::TaskId* task = plan_.add_members();
      task->set_role(v1::TaskId::WORKER);
      task->set_index(i);
      task->set_incarnation(10 + i);
      membership_.Register(*task, v1::Register(), "", now_);
      Beat(i, 1, 0, 0.1 * (i + 1));
    }
  }
  void Beat(int worker, uint64_t generation, double entry_wait, double mean_step) {
    v1::WorkerProgress& progress = membership_.Hear(plan_.members(worker), now_)->progress;
    progress.set_generation(generation);
    progress.set_entry_wait_seconds(entry_wait);
    progress.set_mean_step_seconds(mean_step);
  }

  absl::Time now_ = absl::UnixEpoch();
  Membership membership_{absl::Seconds(5)};
  v1::Plan plan_;
  PlanWatch watch_;
};

TEST_F(PlanWatchTest, ReportsTheLongestWaitOnceAllMembersHaveBegun) {
  EXPECT_FALSE(watch_.OnCommitted(plan_, "operator", absl::Milliseconds(3), membership_, now_).has_value());
  Beat(0, 2, 0.04, 5);
  EXPECT_FALSE(watch_.Check(plan_, membership_, now_).has_value());
  Beat(1, 2, 0.01, 5);
  auto report = watch_.Check(plan_, membership_, now_);
  ASSERT_TRUE(report.has_value());
  EXPECT_DOUBLE_EQ(report->times.stall_seconds, 0.04);
  EXPECT_DOUBLE_EQ(report->times.slowest_step_seconds, 0.2) << "the mean before the change";
  EXPECT_DOUBLE_EQ(report->times.round_trip_seconds, 0.003);
  EXPECT_FALSE(watch_.Check(plan_, membership_, now_).has_value());
}

TEST_F(PlanWatchTest, DoesNotWaitForALostMember) {
  watch_.OnCommitted(plan_, "operator", absl::ZeroDuration(), membership_, now_);
  Beat(0, 2, 0.04, 5);
  membership_.Evict(plan_.members(1), "lost");
  EXPECT_TRUE(watch_.Check(plan_, membership_, now_).has_value());
}

TEST_F(PlanWatchTest, ReportsAfterFiveSecondsAtTheLatest) {
  watch_.OnCommitted(plan_, "operator", absl::ZeroDuration(), membership_, now_);
  EXPECT_TRUE(watch_.Check(plan_, membership_, now_ + absl::Seconds(5)).has_value());
}

TEST_F(PlanWatchTest, TheNextPlanEndsTheWatch) {
  watch_.OnCommitted(plan_, "first", absl::ZeroDuration(), membership_, now_);
  v1::Plan next = plan_;
  next.set_generation(3);
  auto report = watch_.OnCommitted(next, "second", absl::ZeroDuration(), membership_, now_);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->reason, "first");
}

}  // namespace
}  // namespace rubato::coordinator
