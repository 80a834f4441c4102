#include "coordinator/rules/barriers.h"

#include <gtest/gtest.h>

#include "common/status.h"

namespace rubato::coordinator {
namespace {

using Answer = Barriers::Answer;

v1::BarrierRequest From(uint32_t worker, uint64_t round = 1, uint32_t count = 3) {
  v1::BarrierRequest request;
  request.mutable_task()->set_role(v1::TaskId::WORKER);
  request.mutable_task()->set_index(worker);
  request.set_name("here");
  request.set_round(round);
  request.set_count(count);
  return request;
}

// Arrives, and passes if it is the last one.
Answer Come(Barriers& barriers, const v1::BarrierRequest& request) {
  const absl::StatusOr<Answer> answer = barriers.Arrive(request);
  EXPECT_TRUE(answer.ok()) << answer.status();
  if (answer.ok() && *answer == Answer::kOpens) {
    v1::JournalBarrier passed;
    passed.set_name(request.name());
    passed.set_round(request.round());
    barriers.Pass(passed);
  }
  return answer.value_or(Answer::kWaits);
}

TEST(BarriersTest, OpensWhenAllHaveComeAndLetsLaterRequestsThrough) {
  Barriers barriers;
  EXPECT_EQ(Come(barriers, From(0)), Answer::kWaits);
  EXPECT_EQ(Come(barriers, From(0)), Answer::kWaits);  // Asked again.
  EXPECT_EQ(Come(barriers, From(2)), Answer::kWaits);
  EXPECT_EQ(barriers.WhoCame("here", 1), "worker 0, worker 2");
  EXPECT_FALSE(barriers.Passed("here", 1));
  EXPECT_EQ(Come(barriers, From(1)), Answer::kOpens);
  EXPECT_TRUE(barriers.Passed("here", 1));
  EXPECT_EQ(Come(barriers, From(0)), Answer::kPassed);
}

TEST(BarriersTest, TheNextRoundIsAnotherOne) {
  Barriers barriers;
  for (uint32_t worker = 0; worker < 2; ++worker) Come(barriers, From(worker, 1, 2));
  EXPECT_EQ(Come(barriers, From(0, 2, 2)), Answer::kWaits);
  EXPECT_EQ(Come(barriers, From(1, 1, 2)), Answer::kPassed);  // Has not heard that round 1 is over.
  EXPECT_EQ(Come(barriers, From(1, 2, 2)), Answer::kOpens);
}

TEST(BarriersTest, ARestoredRoundIsOver) {
  Barriers barriers;
  v1::JournalBarrier passed;
  passed.set_name("here");
  passed.set_round(4);
  barriers.Pass(passed);
  EXPECT_EQ(Come(barriers, From(0, 4)), Answer::kPassed);
  EXPECT_EQ(Come(barriers, From(0, 5)), Answer::kWaits);
}

TEST(BarriersTest, RefusesWhatMakesNoSense) {
  Barriers barriers;
  const auto error = [&](const v1::BarrierRequest& request) {
    return std::string(barriers.Arrive(request).status().message());
  };
  EXPECT_EQ(error(From(0, 0)), "barrier.round: value 0; allowed: 1 or more");
  EXPECT_EQ(error(From(0, 1, 0)), "barrier.count: value 0; allowed: 1 to 1024");
  EXPECT_EQ(error(From(0, 1, 1025)), "barrier.count: value 1025; allowed: 1 to 1024");
  v1::BarrierRequest request = From(0);
  request.set_name("");
  EXPECT_EQ(error(request), "barrier.name: value 0; allowed: 1 to 256 bytes");
  Come(barriers, From(0));
  EXPECT_EQ(error(From(1, 1, 2)), "barrier.count: value 2; allowed: 3, as the others have it at here");
}

}  // namespace
}  // namespace rubato::coordinator
