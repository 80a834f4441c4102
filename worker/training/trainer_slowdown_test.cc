// The trainer of a worker that is slowed down.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/training/slowdown.h"
#include "worker/training/testing/trainer_fixture.h"

namespace rubato::worker {
namespace {

// Tells of each sleep, which takes time of the trainer's clock.
class TellingClock : public FakeClock {
 public:
  explicit TellingClock(FakeClock* clock) : clock_(clock) {}
  void Sleep(absl::Duration duration) override {
    on_sleep_();
    clock_->Advance(duration);
    FakeClock::Sleep(duration);
  }

  std::function<void()> on_sleep_ = [] {};

 private:
  FakeClock* const clock_;
};

class SlowedTrainerTest : public TrainerTest {
 protected:
  void Slow(const std::string& model) {
    slowdown_ = std::make_unique<Slowdown>(*ParseStraggler(model), kPlace, &sleeps_);
  }

  static constexpr Straggler::Place kPlace = {.seed = 1, .worker = 0, .workers = 2};
  TellingClock sleeps_{&clock_};
};

TEST_F(SlowedTrainerTest, PausesOnceAStepBetweenItsWeightsAndItsFirstPush) {
  Slow("sleep=30ms");
  // {steps begun, tensors pushed}
  std::vector<std::pair<size_t, size_t>> seen;
  sleeps_.on_sleep_ = [&] { seen.emplace_back(parameters_->begun_.size(), parameters_->pushed_.size()); };
  for (int micro_batches : {1, 4}) {
    StartAfresh();
    config_.mutable_training()->set_micro_batches(micro_batches);
    seen.clear();
    FakeSource source(3);
    v1::WorkerProgress progress;
    ASSERT_TRUE(Run(&source, &progress).ok());
    EXPECT_EQ(seen, (std::vector<std::pair<size_t, size_t>>{{1, 0}, {2, 2}, {3, 4}}));
    EXPECT_NEAR(progress.compute_seconds_total(), 0.09, 1e-9);
    EXPECT_NEAR(progress.step_seconds_total(), 0.09, 1e-9);
  }
}

TEST_F(SlowedTrainerTest, AStepOfLocalSgdPausesOnceHoweverManyBatchesItHas) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
  config_.mutable_optimizer()->set_learning_rate(0.5);
  UseLocalSgd(4);
  Slow("sleep=30ms");
  StreamSource source(3, 4);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  EXPECT_NEAR(progress.compute_seconds_total(), 0.09, 1e-9);
}

// Each as long as the step's number says, that of a step that was moved as well.
TEST_F(SlowedTrainerTest, APauseIsThatOfItsStep) {
  Slow("exp=30ms");
  FakeSource source(6);
  parameters_->move_at_ = 3;
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  Straggler straggler(*ParseStraggler("exp=30ms"), kPlace);
  absl::Duration expected;
  for (int64_t step : {0, 1, 2, 13, 14, 15}) expected += straggler.At(step).pause();
  EXPECT_NEAR(progress.compute_seconds_total(), absl::ToDoubleSeconds(expected), 1e-6);
}

TEST_F(SlowedTrainerTest, AStepWithoutABatchIsNotSlower) {
  Slow("sleep=30ms");
  FakeSource source(3);
  source.empty_ = true;
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  EXPECT_EQ(progress.compute_seconds_total(), 0);
}

TEST_F(SlowedTrainerTest, APauseEndsWhenTheWorkerIsAskedToLeave) {
  Slow("sleep=10m");
  sleeps_.on_sleep_ = [&] { trainer_->Drain(); };
  FakeSource source(50);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  EXPECT_TRUE(drained_);
  EXPECT_EQ(progress.steps_total(), 1);
  EXPECT_LT(progress.compute_seconds_total(), 1);
}

}  // namespace
}  // namespace rubato::worker
