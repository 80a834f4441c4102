#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/rules/plan_maker.h"
#include "coordinator/testing/plan_maker_fixture.h"

namespace rubato::coordinator {
namespace {

using testing::ElementsAre;

// Two workers with batches of 24 and 40 examples.
class PlanMakerBatchesTest : public PlanMakerTest {
 protected:
  PlanMakerBatchesTest() {
    StartWith(2);
    batches_.batch_sizes = {{0, 24}, {1, 40}};
    maker_.RequestChange(batches_, now_);
    EnterNext(3);
    EXPECT_THAT(maker_.plan().batch_sizes(), ElementsAre(24, 40));
  }

  // The plan that is announced is made from this step on, and entered.
  void EnterNext(int64_t begun) {
    AckAnnounce(begun, begun);
    AckPlan();
    EnterAll();
  }

  PlanChange batches_ = Rules(v1::SYNC);
};

TEST_F(PlanMakerBatchesTest, StayAsTheyAreWithTheSameMembers) {
  v1::Cut cut;
  cut.set_id(1);
  maker_.RequestCut(cut, now_);
  EnterNext(5);
  EXPECT_THAT(maker_.plan().batch_sizes(), ElementsAre(24, 40)) << "under a plan that is only a cut";
  maker_.RemoveWorkers({WorkerTask(0)}, /*lost=*/true, now_);
  EXPECT_EQ(maker_.plan().members_size(), 1);
  EXPECT_THAT(maker_.plan().batch_sizes(), ElementsAre(24, 40)) << "an amendment leaves them";
  AckPlan();
  maker_.RequestChange(batches_, now_);
  AckAnnounce(7, 7);
  EXPECT_TRUE(maker_.plan().batch_sizes().empty()) << "they are of other members";
}

TEST_F(PlanMakerBatchesTest, HowManyAStepHasStaysUntilAChangeSaysOtherwise) {
  EXPECT_EQ(maker_.plan().sync_every(), 0u) << "as in the config";
  PlanChange fewer_exchanges = Rules(v1::SYNC);
  fewer_exchanges.sync_every = 16;
  maker_.RequestChange(fewer_exchanges, now_);
  EnterNext(5);
  EXPECT_EQ(maker_.plan().sync_every(), 16u);
  maker_.RequestChange(Rules(v1::ASYNC), now_);
  EnterNext(6);
  EXPECT_EQ(maker_.plan().sync_every(), 16u) << "an operator's change of mode";
  maker_.AddWorker(WorkerTask(2), now_);
  EnterNext(7);
  EXPECT_EQ(maker_.plan().sync_every(), 16u) << "with another member";
  fewer_exchanges.sync_every = 1;
  maker_.RequestChange(fewer_exchanges, now_);
  EnterNext(8);
  EXPECT_EQ(maker_.plan().sync_every(), 1u);
}

TEST_F(PlanMakerBatchesTest, TheMomentumStaysUntilAChangeSaysOtherwise) {
  EXPECT_FALSE(maker_.plan().has_momentum()) << "as in the config";
  PlanChange less = Rules(v1::ASYNC);
  less.momentum = 0.5;
  maker_.RequestChange(less, now_);
  EnterNext(5);
  EXPECT_EQ(maker_.plan().momentum(), 0.5);
  maker_.RequestChange(Rules(v1::SYNC), now_);
  EnterNext(6);
  EXPECT_EQ(maker_.plan().momentum(), 0.5) << "an operator's change of mode";
  less.momentum = 0.0;
  maker_.RequestChange(less, now_);
  EnterNext(7);
  EXPECT_TRUE(maker_.plan().has_momentum());
  EXPECT_EQ(maker_.plan().momentum(), 0.0);
}

TEST_F(PlanMakerBatchesTest, GradientsAreCompressedUntilAChangeSaysOtherwise) {
  EXPECT_FALSE(maker_.plan().uncompressed());
  PlanChange off = Rules(v1::ASYNC);
  off.compress = false;
  maker_.RequestChange(off, now_);
  EnterNext(5);
  EXPECT_TRUE(maker_.plan().uncompressed());
  maker_.RequestChange(Rules(v1::SYNC), now_);
  EnterNext(6);
  EXPECT_TRUE(maker_.plan().uncompressed()) << "as it was";
  PlanChange on = Rules(v1::SYNC);
  on.compress = true;
  maker_.RequestChange(on, now_);
  EnterNext(7);
  EXPECT_FALSE(maker_.plan().uncompressed());
}

TEST_F(PlanMakerBatchesTest, AChangeWithoutThemMakesThemEqual) {
  maker_.RequestChange(Rules(v1::ASYNC), now_);
  AckAnnounce(5, 5);
  EXPECT_TRUE(maker_.plan().batch_sizes().empty());
}

}  // namespace
}  // namespace rubato::coordinator
