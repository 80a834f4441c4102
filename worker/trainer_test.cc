#include "worker/trainer.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <set>
#include <vector>

#include "kernels/backend_cpu.h"

namespace rubato::worker {
namespace {

// Parameters in process: one worker, plain SGD when a tensor is pushed. Checks that the trainer keeps the protocol.
class FakeParameters : public Parameters {
 public:
  FakeParameters(Model* model, Backend* backend) : model_(model), backend_(backend) { step_.generation = 1; }

  Step next_step() override { return step_; }
  absl::StatusOr<bool> AwaitTensor(int tensor) override {
    if (moved_) return false;
    awaited_.insert(tensor);
    return true;
  }
  void Restart() override {
    EXPECT_TRUE(moved_);
    moved_ = false;
    awaited_.clear();
  }
  absl::StatusOr<bool> BeginStep(Step* step) override {
    if (move_at_ == step_.step) {  // The coordinator moves everybody on.
      move_at_ = -1;
      moved_ = true;
      step_.generation++;
      step_.step += 10;
      return false;
    }
    EXPECT_EQ(awaited_.size(), model_->spec().tensors.size()) << "a step began before its weights were awaited";
    awaited_.clear();
    *step = step_;
    begun_.push_back(step_.step++);
    return true;
  }
  void PushTensor(int tensor, uint64_t examples, double) override {
    pushed_.push_back(tensor);
    if (examples == 0) {
      ++empty_;
      return;
    }
    float* weight = backend_->HostPointer(model_->weight(tensor));
    const float* gradient = backend_->HostPointer(model_->gradient(tensor));
    for (int64_t i = 0; i < model_->weight(tensor).elements(); ++i) weight[i] -= 0.5f * gradient[i];
  }
  absl::Status AwaitAcknowledgements() override { return absl::OkStatus(); }

  int64_t move_at_ = -1;
  int empty_ = 0;
  std::vector<int64_t> begun_;
  std::vector<int> pushed_;

 private:
  Model* const model_;
  Backend* const backend_;
  Step step_;
  bool moved_ = false;
  std::set<int> awaited_;
};

// The same batch for `steps` steps: class = whether the first input is positive.
class FakeSource : public BatchSource {
 public:
  explicit FakeSource(int steps) : left_(steps) {
    batch_.examples = 8;
    for (int i = 0; i < 8; ++i) {
      const float x = (i % 2 == 0 ? 1.0f : -1.0f) * (1.0f + 0.1f * i);
      batch_.inputs.insert(batch_.inputs.end(), {x, 0.5f});
      batch_.classes.push_back(x > 0 ? 1 : 0);
    }
  }
  absl::StatusOr<Next> Get(const Parameters::Step&) override {
    if (left_ == 0) return Next{Kind::kDone, nullptr, 0};
    if (empty_) return Next{Kind::kEmpty, nullptr, 0};
    return Next{Kind::kBatch, &batch_, 0.25};
  }
  void Begun() override { --left_; }

  bool empty_ = false;
  Batch batch_;

 private:
  int left_;
};

class TrainerTest : public testing::Test {
 protected:
  TrainerTest() {
    config_.mutable_training()->set_batch_size(8);
    config_.mutable_training()->set_micro_batches(1);
    config_.mutable_consistency()->set_on_non_finite(v1::ConsistencyConfig::SKIP_STEP);
    v1::ModelConfig* model = config_.mutable_model();
    model->add_input_shape(2);
    model->add_layers()->mutable_linear()->set_units(2);
    model->mutable_layers(0)->set_name("only");
    model->set_loss(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY);
    spec_ = *BuildModelSpec(*model);
    backend_ = *CreateCpuBackend({});
    Model::Options options;
    options.max_batch = 8;
    model_ = *Model::Create(spec_, backend_.get(), options);
    parameters_ = std::make_unique<FakeParameters>(model_.get(), backend_.get());
  }

  absl::Status Run(FakeSource* source, v1::WorkerProgress* progress) {
    Trainer::Options options;
    options.config = &config_;
    options.spec = &spec_;
    options.model = model_.get();
    options.parameters = parameters_.get();
    options.source = source;
    options.clock = &clock_;
    options.log = &log_;
    Trainer trainer(options);
    absl::Status status = trainer.Run();
    trainer.Describe(progress);
    return status;
  }

  FakeClock clock_;
  Logger log_{"test", &clock_};
  v1::JobConfig config_;
  ModelSpec spec_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<FakeParameters> parameters_;
};

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

TEST_F(TrainerTest, MicroBatchesGiveTheSameWeights) {
  FakeSource whole(10), parts(10);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&whole, &progress).ok());
  const float* weight = backend_->HostPointer(model_->weight(0));
  std::vector<float> expected(weight, weight + 4);
  Model::Options options;
  options.max_batch = 8;
  model_ = *Model::Create(spec_, backend_.get(), options);
  parameters_ = std::make_unique<FakeParameters>(model_.get(), backend_.get());
  config_.mutable_training()->set_micro_batches(4);
  ASSERT_TRUE(Run(&parts, &progress).ok());
  weight = backend_->HostPointer(model_->weight(0));
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(weight[i], expected[i], 1e-5);
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

TEST_F(TrainerTest, SkipsAStepWhoseLossIsNotFinite) {
  FakeSource source(2);
  source.batch_.inputs[0] = std::numeric_limits<float>::quiet_NaN();
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  EXPECT_EQ(progress.non_finite_total(), 2);
  EXPECT_EQ(parameters_->empty_, 4);
}

TEST_F(TrainerTest, StopsTheJobWhereTheConfigSaysSo) {
  config_.mutable_consistency()->set_on_non_finite(v1::ConsistencyConfig::STOP_JOB);
  FakeSource source(2);
  source.batch_.inputs[0] = std::numeric_limits<float>::quiet_NaN();
  v1::WorkerProgress progress;
  absl::Status status = Run(&source, &progress);
  EXPECT_EQ(std::string(status.message()).find("STOP_JOB: worker 0, step 0"), 0u) << status;
}

}  // namespace
}  // namespace rubato::worker
