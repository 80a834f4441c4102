// The trainer with local SGD: several batches between two exchanges with the servers.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "worker/ps_client/not_finite.h"
#include "worker/training/testing/trainer_fixture.h"

namespace rubato::worker {
namespace {

class LocalSgdTrainerTest : public TrainerTest {
 protected:
  LocalSgdTrainerTest() {
    config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
    config_.mutable_optimizer()->set_learning_rate(0.5);
  }
};

TEST_F(LocalSgdTrainerTest, OneWorkerMovesAsItWouldWithAPushAfterEveryBatch) {
  StreamSource batches(12, 1);
  v1::WorkerProgress ordinary;
  ASSERT_TRUE(Run(&batches, &ordinary).ok());
  const std::vector<float> expected = Weights();

  for (int micro_batches : {1, 3}) {
    config_.mutable_training()->set_micro_batches(micro_batches);
    StartAfresh();
    UseLocalSgd(4);
    StreamSource steps(3, 4);
    v1::WorkerProgress progress;
    ASSERT_TRUE(Run(&steps, &progress).ok());
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(Weights()[i], expected[i], 1e-5);
    // The same examples met the same weights.
    EXPECT_EQ(progress.examples_total(), ordinary.examples_total());
    EXPECT_NEAR(progress.loss_total(), ordinary.loss_total(), 1e-3);
    EXPECT_EQ(progress.correct_total(), ordinary.correct_total());
    EXPECT_EQ(progress.steps_total(), 3);
    // Each tensor once a step, in backward order, weighted with the examples of the whole step.
    EXPECT_EQ(parameters_->pushed_, (std::vector<int>{1, 0, 1, 0, 1, 0}));
    EXPECT_EQ(parameters_->examples_, (std::vector<uint64_t>{32, 32, 32, 32, 28, 28}));
  }
}

TEST_F(LocalSgdTrainerTest, FollowsTheLearningRateFromBatchToBatch) {
  v1::LearningRateSchedule* schedule = config_.mutable_optimizer()->mutable_schedule();
  schedule->mutable_step()->set_interval(0.16);  // Two batches.
  schedule->mutable_step()->set_factor(0.5);
  UseLocalSgd(4);
  StreamSource once(1, 4);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&once, &progress).ok());
  const std::vector<float> in_one_step = Weights();
  // As four steps: the rate at the beginning of each is the same.
  StartAfresh();
  UseLocalSgd(4);
  StreamSource batches(4, 1);
  ASSERT_TRUE(Run(&batches, &progress).ok());
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(Weights()[i], in_one_step[i], 1e-6);
}

TEST_F(LocalSgdTrainerTest, TheLocalOptimizerAppliesThePlansLearningRateScale) {
  v1::WorkerProgress progress;
  config_.mutable_optimizer()->set_learning_rate(0.125);
  UseLocalSgd(3);
  StreamSource slower(2, 3);
  ASSERT_TRUE(Run(&slower, &progress).ok());
  const std::vector<float> expected = Weights();

  config_.mutable_optimizer()->set_learning_rate(0.5);
  StartAfresh();
  UseLocalSgd(3);
  StreamSource unscaled(2, 3);
  ASSERT_TRUE(Run(&unscaled, &progress).ok());
  EXPECT_NE(Weights(), expected);

  StartAfresh();
  UseLocalSgd(3);
  parameters_->learning_rate_scale_ = 0.25;
  StreamSource scaled(2, 3);
  ASSERT_TRUE(Run(&scaled, &progress).ok());
  EXPECT_EQ(Weights(), expected);
}

TEST_F(LocalSgdTrainerTest, TheLocalOptimizerHasThePlansMomentum) {
  v1::WorkerProgress progress;
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::MOMENTUM);
  config_.mutable_optimizer()->set_momentum(0.25);
  UseLocalSgd(3);
  StreamSource less(2, 3);
  ASSERT_TRUE(Run(&less, &progress).ok());
  const std::vector<float> expected = Weights();

  config_.mutable_optimizer()->set_momentum(0.9);
  StartAfresh();
  UseLocalSgd(3);
  StreamSource more(2, 3);
  ASSERT_TRUE(Run(&more, &progress).ok());
  EXPECT_NE(Weights(), expected);

  StartAfresh();
  UseLocalSgd(3);
  parameters_->momentum_ = 0.25;
  StreamSource planned(2, 3);
  ASSERT_TRUE(Run(&planned, &progress).ok());
  EXPECT_EQ(Weights(), expected);
}

TEST_F(LocalSgdTrainerTest, AMovedStepLeavesNoTrace) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::MOMENTUM);
  config_.mutable_optimizer()->set_momentum(0.9);
  UseLocalSgd(2);
  StreamSource straight(4, 2);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&straight, &progress).ok());
  const std::vector<float> expected = Weights();
  StartAfresh();
  UseLocalSgd(2);
  parameters_->move_at_ = 2;
  StreamSource moved(4, 2);
  ASSERT_TRUE(Run(&moved, &progress).ok());
  EXPECT_EQ(parameters_->begun_, (std::vector<int64_t>{0, 1, 12, 13}));
  EXPECT_EQ(Weights(), expected);
}

// A source whose step `bad` has something that is not finite in its last local batch.
class SpoiledSource : public StreamSource {
 public:
  SpoiledSource(int steps, int batches, int bad) : StreamSource(steps, batches), bad_(bad) {}
  absl::StatusOr<Next> Get(const Parameters::Step& step) override {
    absl::StatusOr<Next> next = StreamSource::Get(step);
    if (!next.ok() || next->kind != Kind::kBatch || step.step != bad_) return next;
    spoiled_ = *next->batch;
    spoiled_.inputs.back() = std::numeric_limits<float>::infinity();
    next->batch = &spoiled_;
    return next;
  }

 private:
  const int bad_;
  Batch spoiled_;
};

TEST_F(LocalSgdTrainerTest, AStepWithALossThatIsNotFiniteIsSkippedWhole) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAM);
  UseLocalSgd(3);
  SpoiledSource spoiled(1, 3, 0);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&spoiled, &progress).ok());
  EXPECT_EQ(progress.non_finite_total(), 1);
  EXPECT_EQ(progress.examples_total(), 0);
  EXPECT_EQ(parameters_->empty_, 2);
  EXPECT_EQ(Weights(), std::vector<float>(4));
  // The optimizer goes on as if it had not been: a fresh one does the same.
  StreamSource after(2, 3);
  ASSERT_TRUE(Run(&after, &progress).ok());
  const std::vector<float> weights = Weights();
  StartAfresh();
  UseLocalSgd(3);
  StreamSource fresh(2, 3);
  ASSERT_TRUE(Run(&fresh, &progress).ok());
  EXPECT_EQ(weights, Weights());
}

TEST_F(LocalSgdTrainerTest, StopsTheJobAtALossThatIsNotFiniteWhereTheConfigSaysSo) {
  config_.mutable_consistency()->set_on_non_finite(v1::ConsistencyConfig::STOP_JOB);
  UseLocalSgd(3);
  SpoiledSource spoiled(3, 3, 1);
  v1::WorkerProgress progress;
  const absl::Status status = Run(&spoiled, &progress);
  EXPECT_TRUE(IsNotFinite(status));
  EXPECT_EQ(std::string(status.message()).find("worker 0, step 1: the loss is"), 0u) << status;
}

}  // namespace
}  // namespace rubato::worker
