#include "worker/training/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/random.h"
#include "common/storage/file.h"
#include "worker/ps_client/not_finite.h"
#include "worker/training/testing/trainer_fixture.h"

namespace rubato::worker {
namespace {

TEST_F(TrainerTest, TrainsUntilTheSourceIsDone) {
  FakeSource source(50);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  EXPECT_EQ(progress.steps_total(), 50);
  EXPECT_EQ(progress.examples_total(), 400);
  EXPECT_GT(progress.correct_total(), 380);
  EXPECT_LT(progress.loss_total() / progress.examples_total(), 0.3);
  EXPECT_EQ(parameters_->pushed_.size(), 100u);  // Weight and bias.
}

TEST_F(TrainerTest, FinishesTheStepAtWorkWhenItIsAskedToStop) {
  FakeSource source(50);
  int begun = 0;
  source.on_begun_ = [&] {
    if (++begun == 3) trainer_->Drain();
  };
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  EXPECT_EQ(progress.steps_total(), 3);
  EXPECT_EQ(parameters_->pushed_.size(), 6u);
  EXPECT_TRUE(drained_);
  EXPECT_TRUE(source.stopped_);
}

TEST_F(TrainerTest, ASourceThatIsDoneWasNotDrained) {
  FakeSource source(1);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  EXPECT_FALSE(drained_);
  EXPECT_TRUE(source.stopped_);
}

TEST_F(TrainerTest, MicroBatchesGiveTheSameWeights) {
  FakeSource whole(10), split(10);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&whole, &progress).ok());
  const std::vector<float> expected = Weights();
  StartAfresh();
  config_.mutable_training()->set_micro_batches(4);
  ASSERT_TRUE(Run(&split, &progress).ok());
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(Weights()[i], expected[i], 1e-5);
}

TEST_F(TrainerTest, ClipsTheNormOfAllGradientsBeforeThePush) {
  config_.mutable_training()->set_clip_norm(0.01);
  for (int micro_batches : {1, 4}) {
    StartAfresh();
    config_.mutable_training()->set_micro_batches(micro_batches);
    FakeSource source(1);
    v1::WorkerProgress progress;
    ASSERT_TRUE(Run(&source, &progress).ok());
    EXPECT_EQ(parameters_->pushed_, (std::vector<int>{1, 0}));
    // From zero, one step of plain gradient descent.
    double squares = 0;
    for (int tensor : {0, 1}) {
      const float* weight = backend_->HostPointer(model_->weight(tensor));
      for (int64_t i = 0; i < model_->weight(tensor).elements(); ++i) squares += double{weight[i]} * weight[i];
    }
    EXPECT_NEAR(std::sqrt(squares), parameters_->learning_rate_ * 0.01, 1e-8);
  }
}

TEST_F(TrainerTest, AGradientUnderTheClippingNormIsLeftAsItIs) {
  FakeSource plain(5), clipped(5);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&plain, &progress).ok());
  const std::vector<float> expected = Weights();
  StartAfresh();
  config_.mutable_training()->set_clip_norm(1000);
  ASSERT_TRUE(Run(&clipped, &progress).ok());
  EXPECT_EQ(Weights(), expected);
}

TEST_F(TrainerTest, BeginsAgainWhereItIsMovedTo) {
  FakeSource source(6);
  parameters_->move_at_ = 3;
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  EXPECT_EQ(parameters_->begun_, (std::vector<int64_t>{0, 1, 2, 13, 14, 15}));
  EXPECT_EQ(progress.generation(), 2u);
}

TEST_F(TrainerTest, PushesEmptyWhenThereIsNothingToDo) {
  FakeSource source(3);
  source.empty_ = true;
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  EXPECT_EQ(parameters_->empty_, 6);
  EXPECT_EQ(progress.examples_total(), 0);
}

// Servers that send a tensor's weights, and take its gradient, piece by piece. The weights are gone when they are not
// to be used.
class PiecewiseParameters : public FakeParameters {
 public:
  PiecewiseParameters(Model* model, ModelMemory* memory) : FakeParameters(model, memory), memory_(memory) {}

  absl::StatusOr<bool> AwaitElements(int tensor, int64_t elements) override {
    Show(tensor, elements);
    awaited_elements_.push_back({tensor, elements});
    return true;
  }
  absl::StatusOr<bool> AwaitTensor(int tensor) override {
    Show(tensor, static_cast<int64_t>(at_server()[tensor].size()));
    return FakeParameters::AwaitTensor(tensor);
  }
  void PushElements(int tensor, int64_t elements, const Pushed& pushed) override {
    EXPECT_EQ(pushed.examples, 8u);
    pushed_elements_.push_back({tensor, elements});
    const float* const gradient = memory_->Gradient(tensor, 0);
    early_.assign(gradient, gradient + elements);
    std::fill_n(memory_->Weights(tensor, 0), elements, std::nanf(""));
  }
  void PushTensor(int tensor, const Pushed& pushed) override {
    if (!pushed_elements_.empty() && pushed_elements_.back().first == tensor) {
      EXPECT_TRUE(std::equal(early_.begin(), early_.end(), memory_->Gradient(tensor, 0)));
    }
    FakeParameters::PushTensor(tensor, pushed);
    std::fill_n(memory_->Weights(tensor, 0), at_server()[tensor].size(), std::nanf(""));
  }

  // Tensors, and how many of their elements.
  std::vector<std::pair<int, int64_t>> awaited_elements_, pushed_elements_;

 private:
  void Show(int tensor, int64_t elements) {
    std::copy_n(at_server()[tensor].data(), elements, memory_->Weights(tensor, 0));
  }

  ModelMemory* const memory_;
  std::vector<float> early_;
};

class PartsTest : public TrainerTest {
 protected:
  PartsTest() { MakeModel({64, 2048}); }

  void MakeModel(const std::vector<int64_t>& hidden) {
    v1::ModelConfig* model = config_.mutable_model();
    model->clear_layers();
    for (int64_t units : hidden) {
      model->add_layers()->mutable_linear()->set_units(units);
      model->add_layers()->mutable_tanh();
    }
    model->add_layers()->mutable_linear()->set_units(2);
    spec_ = *BuildModelSpec(*model);
    StartAfresh();
  }

  // Trains from random weights.
  std::vector<std::vector<float>> Train(std::unique_ptr<FakeParameters> parameters) {
    parameters_ = std::move(parameters);
    parameters_->learning_rate_ = 0.1f;
    std::vector<std::vector<float>> weights = parameters_->at_server();
    Random random(1);
    for (std::vector<float>& tensor : weights) {
      for (float& weight : tensor) weight = static_cast<float>(0.1 * random.Normal());
    }
    parameters_->Resume(weights, 0);
    FakeSource source(3);
    v1::WorkerProgress progress;
    EXPECT_TRUE(Run(&source, &progress).ok());
    EXPECT_EQ(progress.steps_total(), 3);
    return parameters_->at_server();
  }
};

TEST_F(PartsTest, OfALargeLayerArePushedBeforeTheRestIsComputedAndUsedBeforeTheRestIsThere) {
  const auto expected = Train(std::make_unique<FakeParameters>(model_.get(), &*memory_));
  StartAfresh();
  auto servers = std::make_unique<PiecewiseParameters>(model_.get(), &*memory_);
  const PiecewiseParameters& piecewise = *servers;
  EXPECT_EQ(Train(std::move(servers)), expected);
  const std::pair<int, int64_t> half = {2, 1024 * 64}, all = {2, 2048 * 64};
  EXPECT_EQ(piecewise.pushed_elements_, (std::vector<std::pair<int, int64_t>>{half, half, half}));
  EXPECT_EQ(piecewise.awaited_elements_, (std::vector<std::pair<int, int64_t>>{half, all, half, all, half, all}));
}

TEST_F(PartsTest, OfTheFirstTwoLargeLayersArePushedInTheOrderInWhichTheyAreNeeded) {
  MakeModel({64, 2048, 256});
  const auto expected = Train(std::make_unique<FakeParameters>(model_.get(), &*memory_));
  StartAfresh();
  auto servers = std::make_unique<PiecewiseParameters>(model_.get(), &*memory_);
  const PiecewiseParameters& piecewise = *servers;
  EXPECT_EQ(Train(std::move(servers)), expected);
  const std::pair<int, int64_t> first = {2, 1024 * 64}, second = {4, 128 * 2048};
  EXPECT_EQ(piecewise.pushed_elements_,
            (std::vector<std::pair<int, int64_t>>{first, second, first, second, first, second}));
}

TEST_F(PartsTest, AreNotPushedWhereAllGradientsAreNeededFirst) {
  config_.mutable_training()->set_clip_norm(1e6);
  const auto expected = Train(std::make_unique<FakeParameters>(model_.get(), &*memory_));
  StartAfresh();
  auto servers = std::make_unique<PiecewiseParameters>(model_.get(), &*memory_);
  const PiecewiseParameters& piecewise = *servers;
  EXPECT_EQ(Train(std::move(servers)), expected);
  EXPECT_TRUE(piecewise.pushed_elements_.empty());
}

TEST_F(TrainerTest, SkipsAStepWhoseLossIsNotFinite) {
  FakeSource source(2);
  source.batch_.inputs[0] = std::numeric_limits<float>::quiet_NaN();
  source.batch_.shard = 3;
  source.batch_.begin = 20;
  source.batch_.end = 28;
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  EXPECT_EQ(progress.non_finite_total(), 2);
  EXPECT_EQ(parameters_->empty_, 4);
  // These examples have had their turn.
  ASSERT_EQ(parameters_->slices_.size(), 4u);
  EXPECT_EQ(parameters_->slices_[3].shard(), 3u);
  EXPECT_EQ(parameters_->slices_[3].begin(), 20);
  EXPECT_EQ(parameters_->slices_[3].end(), 28);
}

TEST_F(TrainerTest, StopsTheJobWhereTheConfigSaysSo) {
  config_.mutable_consistency()->set_on_non_finite(v1::ConsistencyConfig::STOP_JOB);
  FakeSource source(2);
  source.batch_.inputs[0] = std::numeric_limits<float>::quiet_NaN();
  v1::WorkerProgress progress;
  absl::Status status = Run(&source, &progress);
  EXPECT_TRUE(IsNotFinite(status));
  EXPECT_EQ(std::string(status.message()).find("worker 0, step 0"), 0u) << status;
}

class TraceTest : public TrainerTest {
 protected:
  TraceTest() {
    config_.set_run_directory(testing::TempDir() + "/traced");
    config_.mutable_training()->set_trace_after_steps(2);
    config_.mutable_training()->set_trace_steps(3);
    RemoveFile(path_).IgnoreError();
  }
  // Names of the spans of each step, in their order.
  std::map<int64_t, std::vector<std::string>> Recorded() {
    std::map<int64_t, std::vector<std::string>> names;
    const auto json = nlohmann::json::parse(*ReadFile(path_));
    for (const auto& event : json["traceEvents"]) {
      if (event["ph"] == "X") names[event["args"]["step"]].push_back(event["name"]);
    }
    return names;
  }
  const std::string path_ = testing::TempDir() + "/traced/traces/worker-0.json";
};

TEST_F(TraceTest, WritesTheTimelineOfTheStepsInQuestion) {
  FakeSource source(10);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  const std::vector<std::string> expected = {"next batch", "inputs",        "await only", "forward only", "begin step",
                                             "loss",       "backward only", "await loss", "push only",    "step"};
  const auto steps = Recorded();
  ASSERT_EQ(steps.size(), 3u);
  for (int64_t step : {2, 3, 4}) EXPECT_EQ(steps.at(step), expected);
}

TEST_F(TraceTest, WritesWhatThereIsWhenTrainingEndsEarly) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
  config_.mutable_optimizer()->set_learning_rate(0.5);
  UseLocalSgd(2);
  StreamSource source(3, 2);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  const auto steps = Recorded();
  ASSERT_EQ(steps.count(2), 1u);
  const std::vector<std::string>& names = steps.at(2);
  EXPECT_EQ(std::count(names.begin(), names.end(), "update only"), 4);  // Weight and bias, twice.
  EXPECT_EQ(std::count(names.begin(), names.end(), "await only"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "push only"), 1);
}

TEST_F(TraceTest, WritesNothingWhereTheJobAsksForNone) {
  config_.mutable_training()->set_trace_steps(0);
  FakeSource source(4);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  EXPECT_FALSE(FileExists(path_));
}

}  // namespace
}  // namespace rubato::worker
