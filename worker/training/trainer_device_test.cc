// The trainer on devices with a small range, and on one that hangs.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/status.h"
#include "kernels/testing/deferred_backend.h"
#include "kernels/testing/hanging_backend.h"
#include "kernels/testing/small_range_backend.h"
#include "worker/ps_client/not_finite.h"
#include "worker/testing/shared_clock.h"
#include "worker/training/testing/trainer_fixture.h"

namespace rubato::worker {
namespace {

class ScaledTrainerTest : public TrainerTest {
 protected:
  ScaledTrainerTest() {
    config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
    config_.mutable_optimizer()->set_learning_rate(0.5);
    scales_loss_ = true;
    SetScale(64, 1000);
    UseRange(16);
  }

  void SetScale(double initial, int64_t growth_steps) {
    config_.mutable_training()->mutable_loss_scale()->set_initial(initial);
    config_.mutable_training()->mutable_loss_scale()->set_growth_steps(growth_steps);
  }

  void UseRange(float largest_scale) { UseDevice(std::make_unique<SmallRangeBackend>(largest_scale)); }
};

TEST_F(ScaledTrainerTest, AnOverflowIsNotPushedAndHalvesTheScale) {
  StreamSource source(5, 1);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  // 64 and 32 overflow in steps 0 and 1, which contribute nothing.
  EXPECT_EQ(progress.overflow_total(), 2);
  EXPECT_EQ(progress.loss_scale(), 16);
  EXPECT_EQ(parameters_->empty_, 4);
  EXPECT_EQ(parameters_->examples_.size(), 6u);
  EXPECT_EQ(progress.steps_total(), 5);
  EXPECT_EQ(progress.examples_total(), 8 + 8 + 4);
  EXPECT_EQ(progress.non_finite_total(), 0);
}

TEST_F(ScaledTrainerTest, WithoutOverflowTheWeightsAreThoseOfUnscaledTraining) {
  UseRange(1 << 20);
  for (double clip_norm : {0.0, 0.05}) {
    for (int micro_batches : {1, 3}) {
      config_.mutable_training()->set_clip_norm(clip_norm);
      config_.mutable_training()->set_micro_batches(micro_batches);
      std::vector<float> weights[2];
      for (bool scales : {false, true}) {
        scales_loss_ = scales;
        StartAfresh();
        StreamSource source(6, 1);
        v1::WorkerProgress progress;
        ASSERT_TRUE(Run(&source, &progress).ok());
        EXPECT_EQ(progress.loss_scale(), scales ? 64 : 0);
        weights[scales] = Weights();
      }
      EXPECT_EQ(weights[true], weights[false]) << "clip_norm " << clip_norm << ", micro_batches " << micro_batches;
    }
  }
}

TEST_F(ScaledTrainerTest, TheScaleGrowsUntilItOverflows) {
  SetScale(4, 2);
  StreamSource source(7, 1);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  // 4 4 8 8 16 16 32: the last one overflows.
  EXPECT_EQ(progress.overflow_total(), 1);
  EXPECT_EQ(progress.loss_scale(), 16);
}

TEST_F(ScaledTrainerTest, WhatIsNotFiniteWithAScaleOf1FollowsThePolicy) {
  SetScale(2, 1000);
  UseRange(0.5);
  StreamSource skips(3, 1), stops(3, 1);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&skips, &progress).ok());
  EXPECT_EQ(progress.overflow_total(), 1);
  EXPECT_EQ(progress.non_finite_total(), 2);
  EXPECT_EQ(parameters_->empty_, 6);

  config_.mutable_consistency()->set_on_non_finite(v1::ConsistencyConfig::STOP_JOB);
  StartAfresh();
  const absl::Status status = Run(&stops, &progress);
  EXPECT_TRUE(IsNotFinite(status));
  EXPECT_EQ(status.message(), "worker 0, step 1: gradients are not finite with a loss scale of 1");
}

TEST_F(ScaledTrainerTest, AnOverflowOfOneBatchUndoesALocalStep) {
  UseLocalSgd(2);
  StreamSource source(4, 2);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  EXPECT_EQ(progress.overflow_total(), 2);
  EXPECT_EQ(parameters_->empty_, 4);
  EXPECT_EQ(parameters_->examples_, (std::vector<uint64_t>{16, 16, 12, 12}));
  for (float weight : Weights()) EXPECT_TRUE(std::isfinite(weight));
}

class HangingDeviceTest : public TrainerTest {
 protected:
  // What the watchdog says of a trainer whose device, of a kind that hangs, does so after some answers.
  template <typename Device>
  std::string Train(int64_t answers, v1::WorkerProgress* progress) {
    SharedClock clock;
    auto device = std::make_unique<Device>(answers, [&clock] {
      clock.Sleep(absl::Seconds(1));
      std::this_thread::yield();
    });
    HangingBackend* const hanging = device.get();
    std::string what;
    watchdog_ = std::make_unique<StepWatchdog>(
        StepWatchdog::Options{.limit = absl::Seconds(60),
                              .clock = &clock,
                              .poll = absl::Milliseconds(1),
                              .on_expired = [&](const std::string& text) { what = text, hanging->GiveUp(); }});
    UseDevice(std::move(device));
    StreamSource source(5, 1);
    EXPECT_EQ(Run(&source, progress).message(), "given up");
    watchdog_.reset();
    return what;
  }
};

TEST_F(HangingDeviceTest, IsNoticedWithinTheStepsTime) {
  v1::WorkerProgress progress;
  // A step waits for the loss and for the gradients of two tensors.
  const std::string what = Train<HangingBackend>(2 * 3, &progress);
  EXPECT_NE(what.find("step 2 has been with the device for "), std::string::npos) << what;
  EXPECT_NE(what.find("longer than training.step_timeout_seconds, 1m; it waits in \"await loss\""), std::string::npos)
      << what;
  EXPECT_EQ(progress.steps_total(), 2);
}

// One that makes the caller of a copy wait.
class WaitingCopiesBackend : public HangingBackend {
 public:
  using HangingBackend::HangingBackend;
  absl::Status DoCopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) override {
    RUBATO_RETURN_IF_ERROR(Synchronize());
    return HangingBackend::DoCopyToDevice(to, offset, count, from);
  }
};

TEST_F(HangingDeviceTest, IsNoticedWhereWeightsAreCopied) {
  v1::WorkerProgress progress;
  // Inputs and labels go before them.
  const std::string what = Train<WaitingCopiesBackend>(2, &progress);
  EXPECT_NE(what.find("it waits in \"weights to the device\""), std::string::npos) << what;
}

TEST_F(TrainerTest, AWatchdogLeavesADeviceAloneThatAnswers) {
  SharedClock clock;
  bool expired = false;
  watchdog_ =
      std::make_unique<StepWatchdog>(StepWatchdog::Options{.limit = absl::Seconds(60),
                                                           .clock = &clock,
                                                           .poll = absl::Milliseconds(1),
                                                           .on_expired = [&](const std::string&) { expired = true; }});
  UseDevice(std::make_unique<DeferredBackend>());
  StreamSource source(20, 1);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  watchdog_.reset();
  EXPECT_FALSE(expired);
  EXPECT_EQ(progress.steps_total(), 20);
}

// Counts who waits for all that the device has to do.
class WaitingBackend : public DeferredBackend {
 public:
  explicit WaitingBackend(int* waits) : waits_(waits) {}
  absl::Status Synchronize() override {
    ++*waits_;
    return DeferredBackend::Synchronize();
  }

 private:
  int* const waits_;
};

TEST_F(TrainerTest, NoStepWaitsForAllThatTheDeviceHasToDo) {
  config_.mutable_training()->mutable_loss_scale()->set_initial(16);
  config_.mutable_training()->mutable_loss_scale()->set_growth_steps(1000);
  for (bool scales : {false, true}) {
    for (int micro_batches : {1, 3}) {
      scales_loss_ = scales;
      config_.mutable_training()->set_micro_batches(micro_batches);
      int waits = 0, of_fewer = 0;
      for (int* counted : {&of_fewer, &waits}) {
        UseDevice(std::make_unique<WaitingBackend>(counted));
        StartAfresh();
        *counted = 0;
        StreamSource source(counted == &waits ? 20 : 2, 1);
        v1::WorkerProgress progress;
        ASSERT_TRUE(Run(&source, &progress).ok());
        EXPECT_EQ(progress.overflow_total(), 0);
      }
      EXPECT_EQ(waits, of_fewer) << scales << " " << micro_batches;
    }
  }
}

class StagingTest : public TrainerTest {
 protected:
  // The weights after some steps on a device of its own, if `ahead` is what the source says of the next batch.
  std::vector<float> Train(StreamSource::Ahead ahead, int batches) {
    StartAfresh();
    if (batches > 1) UseLocalSgd(batches);
    StreamSource source(6, batches, ahead);
    v1::WorkerProgress progress;
    EXPECT_TRUE(Run(&source, &progress).ok());
    EXPECT_EQ(progress.steps_total(), 6);
    return Weights();
  }
};

TEST_F(StagingTest, TheNextBatchIsTakenAheadOfItsStep) {
  UseDevice(std::make_unique<DeferredBackend>());
  EXPECT_EQ(Train(StreamSource::Ahead::kRightAndGone, 1), Train(StreamSource::Ahead::kNothing, 1));
}

TEST_F(StagingTest, WeightsAreTheSameWithAnyBatchAhead) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
  config_.mutable_optimizer()->set_learning_rate(0.5);
  UseDevice(std::make_unique<DeferredBackend>());
  for (int batches : {1, 2}) {
    for (int micro_batches : {1, 3}) {
      config_.mutable_training()->set_micro_batches(micro_batches);
      const std::vector<float> expected = Train(StreamSource::Ahead::kNothing, batches);
      EXPECT_EQ(Train(StreamSource::Ahead::kRight, batches), expected) << batches << " " << micro_batches;
      EXPECT_EQ(Train(StreamSource::Ahead::kWrong, batches), expected) << batches << " " << micro_batches;
    }
  }
}

TEST_F(StagingTest, AMovedStepComputesItsOwnBatch) {
  UseDevice(std::make_unique<DeferredBackend>());
  std::vector<std::vector<float>> weights;
  for (StreamSource::Ahead ahead : {StreamSource::Ahead::kNothing, StreamSource::Ahead::kRight}) {
    StartAfresh();
    parameters_->move_at_ = 3;
    StreamSource source(6, 1, ahead);
    v1::WorkerProgress progress;
    ASSERT_TRUE(Run(&source, &progress).ok());
    weights.push_back(Weights());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

}  // namespace
}  // namespace rubato::worker
