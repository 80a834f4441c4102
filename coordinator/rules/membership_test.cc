#include "coordinator/rules/membership.h"

#include <gtest/gtest.h>

namespace rubato::coordinator {
namespace {

v1::TaskId Task(v1::TaskId::Role role, uint32_t index, uint64_t incarnation) {
  v1::TaskId task;
  task.set_role(role);
  task.set_index(index);
  task.set_incarnation(incarnation);
  return task;
}

const absl::Time kStart = absl::UnixEpoch();

class MembershipTest : public testing::Test {
 protected:
  Membership::Arrival Register(const v1::TaskId& task, absl::Time now = kStart) {
    return membership_.Register(task, v1::Register(), "host:1", now);
  }
  Membership membership_{absl::Seconds(5)};
};

TEST_F(MembershipTest, ANewIncarnationReplacesTheOldOne) {
  EXPECT_EQ(Register(Task(v1::TaskId::WORKER, 1, 10)).kind, Membership::Kind::kNew);
  auto arrival = Register(Task(v1::TaskId::WORKER, 1, 11));
  EXPECT_EQ(arrival.kind, Membership::Kind::kNew);
  ASSERT_TRUE(arrival.replaced.has_value());
  EXPECT_EQ(arrival.replaced->incarnation(), 10u);
  EXPECT_EQ(membership_.Hear(Task(v1::TaskId::WORKER, 1, 10), kStart), nullptr);
  EXPECT_EQ(Register(Task(v1::TaskId::WORKER, 1, 10)).kind, Membership::Kind::kGone);
  EXPECT_EQ(membership_.Alive(v1::TaskId::WORKER).size(), 1u);
}

TEST_F(MembershipTest, TheSameIncarnationReconnects) {
  Register(Task(v1::TaskId::SERVER, 0, 10));
  auto arrival = Register(Task(v1::TaskId::SERVER, 0, 10), kStart + absl::Seconds(4));
  EXPECT_EQ(arrival.kind, Membership::Kind::kReconnected);
  EXPECT_TRUE(membership_.Expired(kStart + absl::Seconds(8)).empty());
}

TEST_F(MembershipTest, ThoseWhoFellSilentOneAfterAnotherAreLostTogether) {
  const auto at = [](double seconds) { return kStart + absl::Seconds(seconds); };
  Register(Task(v1::TaskId::WORKER, 0, 10), at(0));
  Register(Task(v1::TaskId::WORKER, 1, 10), at(0.6));
  Register(Task(v1::TaskId::WORKER, 2, 10), at(1.2));
  Register(Task(v1::TaskId::WORKER, 3, 10), at(4));
  EXPECT_TRUE(membership_.Expired(at(5)).empty()) << "worker 1 may be lost, too";
  EXPECT_TRUE(membership_.Expired(at(6.1)).empty()) << "worker 2";
  EXPECT_EQ(membership_.Expired(at(6.24)).size(), 3u);
  // Worker 3 is silent as well, but nobody is waited for any longer.
  EXPECT_EQ(membership_.Expired(at(7.8)).size(), 3u);
}

TEST_F(MembershipTest, ALeaseRunsOutWithoutHeartbeats) {
  Register(Task(v1::TaskId::SERVER, 0, 10));
  Register(Task(v1::TaskId::WORKER, 0, 20));
  ASSERT_NE(membership_.Hear(Task(v1::TaskId::WORKER, 0, 20), kStart + absl::Seconds(3)), nullptr);
  auto expired = membership_.Expired(kStart + absl::Seconds(5));
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].role(), v1::TaskId::SERVER);
  membership_.RenewAll(kStart + absl::Seconds(5));
  EXPECT_TRUE(membership_.Expired(kStart + absl::Seconds(9)).empty());
}

TEST_F(MembershipTest, AnEvictedIncarnationNeverComesBack) {
  v1::TaskId worker = Task(v1::TaskId::WORKER, 3, 7);
  Register(worker);
  EXPECT_TRUE(membership_.Evict(worker, "no heartbeat"));
  EXPECT_FALSE(membership_.Evict(worker, "again"));
  EXPECT_EQ(Register(worker).kind, Membership::Kind::kGone);
  EXPECT_EQ(membership_.Find(v1::TaskId::WORKER, 3)->reason, "no heartbeat");
  auto arrival = Register(Task(v1::TaskId::WORKER, 3, 8));
  EXPECT_EQ(arrival.kind, Membership::Kind::kNew);
  EXPECT_FALSE(arrival.replaced.has_value());
}

TEST_F(MembershipTest, AliveIsInOrderOfIndex) {
  for (uint32_t index : {2u, 0u, 1u}) Register(Task(v1::TaskId::WORKER, index, 5 + index));
  membership_.Leave(Task(v1::TaskId::WORKER, 1, 6), "");
  auto alive = membership_.Alive(v1::TaskId::WORKER);
  ASSERT_EQ(alive.size(), 2u);
  EXPECT_EQ(alive[0]->id.index(), 0u);
  EXPECT_EQ(alive[1]->id.index(), 2u);
}

}  // namespace
}  // namespace rubato::coordinator
