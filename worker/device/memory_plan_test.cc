#include "worker/device/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/load.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/planning_backend.h"
#include "kernels/testing/deferred_backend.h"
#include "worker/training/local_optimizer.h"

namespace rubato::worker {
namespace {

using ::testing::HasSubstr;

constexpr char kLinear[] = R"(
  name: "plan"
  cluster { workers: 1 }
  model { input_shape: 8 layers { linear { units: 4 } } loss: SOFTMAX_CROSS_ENTROPY }
  data { teacher { train_examples: 100 } }
  optimizer { algorithm: MOMENTUM learning_rate: 0.1 }
  consistency { mode: SYNC }
  training { batch_size: 10 epochs: 1 }
)";

constexpr char kConv[] = R"(
  name: "plan"
  cluster { workers: 1 }
  model {
    input_shape: [3, 32, 32]
    layers { conv2d { filters: 16 kernel: 3 padding: 1 } }
    layers { relu {} }
    layers { conv2d { filters: 16 kernel: 3 padding: 1 } }
    layers { linear { units: 10 } }
    loss: SOFTMAX_CROSS_ENTROPY
  }
  data { teacher { train_examples: 100 } }
  optimizer { algorithm: SGD learning_rate: 0.1 }
  consistency { mode: SYNC }
  training { batch_size: 64 epochs: 1 }
)";

v1::JobConfig Config(const char* text, const std::vector<std::string>& overrides = {}) {
  return *ParseJobConfig(text, "plan.textproto", overrides);
}

MemoryPlan Plan(const v1::JobConfig& config, bool staged = false, const WorkspaceRules& rules = {}) {
  return *PlanMemory(config, *BuildModelSpec(config.model()), rules, staged);
}

// A device with so much memory, all of it free.
class SmallBackend : public DeferredBackend {
 public:
  explicit SmallBackend(int64_t bytes) : bytes_(bytes) {}
  absl::StatusOr<DeviceMemory> Memory() const override { return DeviceMemory{.total = bytes_, .free = bytes_}; }
  WorkspaceRules Workspace() const override {
    return {.fixed_bytes = 1 << 20, .gathered_bytes = 4, .im2col_elements = 1 << 20, .score_elements = 1 << 20};
  }
  absl::Status Reserve(int64_t tensor_bytes, int64_t workspace_bytes) override {
    reserved_tensors = tensor_bytes;
    reserved_workspace = workspace_bytes;
    return absl::OkStatus();
  }

  int64_t reserved_tensors = 0, reserved_workspace = 0;

 private:
  const int64_t bytes_;
};

TEST(MemoryPlanTest, CountsEveryTensorOfTheModel) {
  const MemoryPlan plan = Plan(Config(kLinear));
  // Tensors take multiples of 256 bytes. Weight and bias.
  EXPECT_EQ(plan.weights, 512);
  EXPECT_EQ(plan.gradients, 512);
  // Inputs of 320 bytes and labels of 40, of this batch and of the next.
  EXPECT_EQ(plan.inputs, 2 * (512 + 256));
  // The output, its gradient, the sums of the loss, and those of squares.
  EXPECT_EQ(plan.activations, 4 * 256);
  EXPECT_EQ(plan.workspace, 0);
  EXPECT_EQ(plan.staging, 0);
  // Four batches ahead and the one in work, each of 10 examples of 9 numbers.
  EXPECT_EQ(plan.batches, 5 * 10 * 9 * 4);
  EXPECT_EQ(plan.local, 0);
}

TEST(MemoryPlanTest, MicroBatchesTakeLessOfTheDeviceAndNotOfTheHost) {
  const MemoryPlan whole = Plan(Config(kConv)), split = Plan(Config(kConv, {"training.micro_batches=7"}));
  EXPECT_EQ(LargestMicroBatch(Config(kConv, {"training.micro_batches=7"}), 1), 10);
  EXPECT_LT(split.activations, whole.activations / 6);
  EXPECT_LT(split.inputs, whole.inputs / 6);
  EXPECT_EQ(split.weights, whole.weights);
  EXPECT_EQ(split.batches, whole.batches);
}

TEST(MemoryPlanTest, ADeviceOfItsOwnNeedsCopiesOnTheHost) {
  const int64_t tensors = (8 * 4 + 4) * 4;
  EXPECT_EQ(Plan(Config(kLinear), true).staging, 2 * tensors + 2 * (320 + 40));
}

TEST(MemoryPlanTest, LocalSgdKeepsItsStateOnTheDevice) {
  const v1::JobConfig config = Config(kLinear), local = Config(kLinear, {"consistency.sync_every=3"});
  const MemoryPlan without = Plan(config, true), with = Plan(local, true);
  // Weights at the start, momentum now and then, each of two tensors; and a sum.
  EXPECT_EQ(with.local, 3 * 2 * 256 + 256);
  EXPECT_EQ(Plan(local, false).local, with.local);
  EXPECT_EQ(with.OnDevice(), without.OnDevice() + with.local);
  EXPECT_EQ(with.OnHost(), without.OnHost() + 5 * 20 * 9 * 4);
  PlanningBackend backend;
  const auto model = *Model::Create(*BuildModelSpec(local.model()), &backend, {.max_batch = 1});
  const int64_t before = backend.bytes();
  ASSERT_TRUE(LocalOptimizer::Create(local.optimizer(), model.get(), &backend).ok());
  EXPECT_EQ(backend.bytes() - before, with.local);
}

TEST(MemoryPlanTest, TheLargestOperationGivesTheWorkspace) {
  const WorkspaceRules rules = {.fixed_bytes = 7, .gathered_bytes = 4, .im2col_elements = 1 << 30};
  // The second convolution: 144 taps at 1024 positions of 64 images.
  const int64_t columns = int64_t{144} * 1024 * 64, gradients = int64_t{16} * 1024 * 64;
  const int64_t weights = int64_t{144} * 16;
  EXPECT_EQ(Plan(Config(kConv), true, rules).workspace, (columns + gradients + weights) * 4 + 7);
}

TEST(MemoryPlanTest, ActivationsOf16BitsTakeHalf) {
  const MemoryPlan floats = Plan(Config(kConv)),
                   halves = Plan(Config(kConv), false, {.activation_type = ElementType::kBfloat16});
  // And the model's input once more.
  const auto share = static_cast<double>(halves.activations) / static_cast<double>(floats.activations);
  EXPECT_GT(share, 0.5);
  EXPECT_LT(share, 0.55);
  EXPECT_EQ(halves.weights, floats.weights);
  EXPECT_EQ(halves.gradients, floats.gradients);
}

TEST(MemoryPlanTest, ADeviceThatEncodesHasMessagesAndResiduals) {
  const v1::JobConfig one_bit = Config(kLinear, {"compression.push.codec=ONE_BIT"});
  const int64_t tensors = (8 * 4 + 4) * 4;
  // For the weight and the bias: two means and the bits; and an element each.
  const int64_t encoded = (8 + 32 / 8) + (8 + 4);
  EXPECT_EQ(Plan(one_bit, true).encoded, 4 * 256);
  EXPECT_EQ(Plan(one_bit, true).staging, 2 * tensors + 2 * (320 + 40) + encoded + tensors);
  EXPECT_EQ(Plan(one_bit, false).encoded, 0);
  // The larger tensor is chosen from.
  const v1::JobConfig top_k = Config(kLinear, {"compression.push.codec=TOP_K"});
  EXPECT_EQ(Plan(top_k, true, {.fixed_bytes = 7, .top_k_bytes = 24}).workspace, 24 * 32 + 7);
}

// A plan may give it more than training.batch_size.
TEST(MemoryPlanTest, AWorkerOfABalancedJobHasMemoryForTheLargestBatch) {
  const v1::JobConfig equal = Config(kConv);
  const v1::JobConfig balanced =
      Config(kConv, {"consistency.policy=BALANCE", "consistency.balance.batch_max=1.5", "training.micro_batches=2"});
  EXPECT_EQ(LargestMicroBatch(equal, 1), equal.training().batch_size());
  EXPECT_EQ(LargestMicroBatch(balanced, 1), (equal.training().batch_size() * 3 / 2 + 1) / 2);
  EXPECT_EQ(Plan(balanced).batches, Plan(equal).batches * 3 / 2);
}

TEST(MemoryPlanTest, OneOfSeveralGpusComputesAPartAndTakesTheOthersGradients) {
  const v1::JobConfig config = Config(kConv);
  const ModelSpec spec = *BuildModelSpec(config.model());
  EXPECT_EQ(LargestMicroBatch(config, 3), 22);
  const MemoryPlan one = *PlanMemory(config, spec, {}, true), three = *PlanMemory(config, spec, {}, true, 3);
  EXPECT_EQ(one.exchange, 0);
  int64_t largest = 0;
  for (const TensorSpec& tensor : spec.tensors) largest = std::max(largest, NumElements(tensor.shape));
  EXPECT_EQ(three.exchange, 2 * ((4 * largest + 255) / 256 * 256));
  EXPECT_EQ(three.gradients, one.gradients);
  EXPECT_NEAR(static_cast<double>(three.activations) / static_cast<double>(one.activations), 22.0 / 64, 0.01);
}

TEST(MemoryPlanTest, AJobThatFitsIsDescribedInOneLine) {
  const v1::JobConfig config = Config(kConv);
  auto backend = CreateCpuBackend({});
  const auto line = FitMemory(config, *BuildModelSpec(config.model()), backend->get());
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(*line, HasSubstr("MiB free on cpu (weights 0.6, gradients 0.6, activations "));
  EXPECT_EQ(line->find('\n'), std::string::npos);
}

TEST(MemoryPlanTest, WhatFitsIsReserved) {
  const v1::JobConfig config = Config(kConv);
  const ModelSpec spec = *BuildModelSpec(config.model());
  SmallBackend backend(1 << 30);
  EXPECT_TRUE(FitMemory(config, spec, &backend).ok());
  const WorkspaceRules rules = backend.Workspace();
  const MemoryPlan plan = *PlanMemory(config, spec, rules, true);
  EXPECT_EQ(backend.reserved_workspace, plan.workspace - rules.fixed_bytes);
  EXPECT_EQ(backend.reserved_tensors, plan.weights + plan.gradients + plan.activations + plan.inputs);
}

TEST(MemoryPlanTest, ABatchThatDoesNotFitIsRefusedWithTheLargestThatDoes) {
  v1::JobConfig config = Config(kConv, {"training.batch_size=100000"});
  const ModelSpec spec = *BuildModelSpec(config.model());
  SmallBackend backend(64 << 20);
  const absl::Status status = FitMemory(config, spec, &backend).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("training.batch_size: value 100000; allowed: 1 to "));
  EXPECT_THAT(std::string(status.message()), HasSubstr(" of 64.0 MiB free on deferred"));
  int64_t largest = 0;
  ASSERT_EQ(
      sscanf(std::string(status.message()).c_str(), "training.batch_size: value 100000; allowed: 1 to %ld,", &largest),
      1);
  config.mutable_training()->set_batch_size(largest);
  EXPECT_TRUE(FitMemory(config, spec, &backend).ok()) << largest;
  config.mutable_training()->set_batch_size(largest + 1);
  EXPECT_FALSE(FitMemory(config, spec, &backend).ok()) << largest;
  // The same batch in micro-batches fits.
  config.mutable_training()->set_micro_batches(2);
  EXPECT_TRUE(FitMemory(config, spec, &backend).ok());
}

TEST(MemoryPlanTest, AnEvaluationThatDoesNotFitIsRefusedWithItsOwnBatch) {
  // What is trained with does not count: neither its batch, nor its codec, nor what is prepared ahead.
  v1::JobConfig config = Config(kConv, {"training.batch_size=100000", "evaluation.batch_size=1000",
                                        "compression.push.codec=ONE_BIT", "consistency.sync_every=4"});
  const ModelSpec spec = *BuildModelSpec(config.model());
  SmallBackend backend(64 << 20);
  const std::string message(FitEvaluation(config, spec, &backend).status().message());
  int64_t largest = 0;
  ASSERT_EQ(
      sscanf(message.c_str(), "evaluation.batch_size: value 1000; allowed: 1 to %ld, because evaluating", &largest), 1)
      << message;
  EXPECT_THAT(message, HasSubstr("encoded 0.0, exchange 0.0"));
  config.mutable_evaluation()->set_batch_size(largest);
  const auto line = FitEvaluation(config, spec, &backend);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(*line, HasSubstr("local updates 0.0"));
  config.mutable_evaluation()->set_batch_size(largest + 1);
  EXPECT_EQ(FitEvaluation(config, spec, &backend).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(MemoryPlanTest, SaysWhereNoBatchFits) {
  const v1::JobConfig config = Config(kConv);
  SmallBackend backend(100000);
  const absl::Status status = FitMemory(config, *BuildModelSpec(config.model()), &backend).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("training.batch_size: value 64; allowed: none fits, because "));
}

}  // namespace
}  // namespace rubato::worker
