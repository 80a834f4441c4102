#include "worker/nn/replicated_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/random.h"
#include "kernels/testing/deferred_backend.h"
#include "worker/nn/model_test_util.h"

namespace rubato::worker {
namespace {

constexpr int64_t kInputs = 5, kClasses = 3, kLargest = 12;

constexpr char kNetwork[] = R"pb(
  input_shape: 5
  layers { linear { units: 7 } }
  layers { tanh {} }
  layers { linear { units: 3 } }
  loss: SOFTMAX_CROSS_ENTROPY
)pb";

struct Examples {
  std::vector<float> inputs;
  std::vector<int32_t> classes;
  int64_t count() const { return static_cast<int64_t>(classes.size()); }
};

Examples RandomExamples(int64_t n, uint64_t seed) {
  Random random(seed);
  Examples examples;
  for (int64_t i = 0; i < n * kInputs; ++i) examples.inputs.push_back(static_cast<float>(random.Normal()));
  for (int64_t i = 0; i < n; ++i) examples.classes.push_back(static_cast<int32_t>(random.Next32() % kClasses));
  return examples;
}

// Replicas on devices that do their work as late as they may.
class Devices {
 public:
  Devices(int count, TestModel& weights) {
    std::vector<Replica> replicas;
    for (int i = 0; i < count; ++i) {
      backends_.push_back(std::make_unique<DeferredBackend>());
      models_.push_back(*Model::Create(weights->spec(), backends_.back().get(), {.max_batch = kLargest}));
      replicas.push_back({models_.back().get(), backends_.back().get()});
    }
    model_ = std::make_unique<ReplicatedModel>(*ReplicatedModel::Create(replicas));
    SetWeights(weights);
  }

  ReplicatedModel& operator*() { return *model_; }

  void SetWeights(TestModel& weights) {
    for (const Replica& replica : model_->replicas()) {
      for (int t = 0; t < weights.tensors(); ++t) {
        const DeviceTensor& weight = replica.model->weight(t);
        EXPECT_TRUE(replica.backend->CopyToDevice(weight, 0, weight.elements(), weights.weight(t)).ok());
      }
    }
  }

  LossResult Pass(const Examples& examples, float scale, bool accumulate, bool final) {
    Stage(examples);
    EXPECT_TRUE(model_->BeginStaged().ok());
    Forward();
    return Backward(scale, accumulate, final);
  }
  void Forward() {
    for (int l = 0; l < layers(); ++l) EXPECT_TRUE(model_->ForwardLayer(l, true, 0).ok());
  }
  LossResult Backward(float scale, bool accumulate, bool final) {
    EXPECT_TRUE(model_->EnqueueLoss(scale).ok());
    const absl::StatusOr<LossResult> loss = model_->AwaitLoss();
    EXPECT_TRUE(loss.ok()) << loss.status();
    for (int l = layers() - 1; l >= 0; --l) EXPECT_TRUE(model_->BackwardLayer(l, accumulate, final).ok());
    return *loss;
  }
  // The examples' memory is used for something else at once.
  void Stage(Examples examples) {
    EXPECT_TRUE(model_->StageInputs(examples.inputs.data(), examples.classes.data(), examples.count()).ok());
    std::fill(examples.inputs.begin(), examples.inputs.end(), 1e9f);
    std::fill(examples.classes.begin(), examples.classes.end(), -1);
  }

  std::vector<float> Gradient(int tensor) {
    const DeviceTensor& gradient = model_->lead().gradient(tensor);
    std::vector<float> values(gradient.elements());
    Backend* const backend = model_->replicas()[0].backend;
    EXPECT_TRUE(backend->CopyToHost(gradient, 0, gradient.elements(), values.data()).ok());
    EXPECT_TRUE(backend->Synchronize().ok());
    return values;
  }

 private:
  int layers() const { return static_cast<int>(model_->spec().layers.size()); }

  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<std::unique_ptr<Model>> models_;
  std::unique_ptr<ReplicatedModel> model_;
};

class ReplicatedModelTest : public ::testing::TestWithParam<int> {
 protected:
  // One step of these micro-batches on the devices and on one model that the host computes.
  void ExpectTheSame(Devices& devices, const std::vector<int64_t>& sizes, uint64_t seed) {
    int64_t total = 0;
    for (int64_t size : sizes) total += size;
    const float scale = 1.0f / static_cast<float>(total);
    LossResult actual, expected;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Examples examples = RandomExamples(sizes[i], seed + i);
      const LossResult part = devices.Pass(examples, scale, i > 0, i + 1 == sizes.size());
      actual.loss_sum += part.loss_sum;
      actual.correct += part.correct;
      ASSERT_OK(one_->SetInputs(examples.inputs.data(), examples.classes.data(), examples.count()));
      const LossResult whole = one_.Forward(true, 0, scale);
      one_.Backward(i > 0);
      expected.loss_sum += whole.loss_sum;
      expected.correct += whole.correct;
    }
    EXPECT_NEAR(actual.loss_sum, expected.loss_sum, 1e-5 * total);
    EXPECT_EQ(actual.correct, expected.correct);
    for (int t = 0; t < one_.tensors(); ++t) {
      const std::vector<float> gradient = devices.Gradient(t);
      for (size_t i = 0; i < gradient.size(); ++i) ASSERT_NEAR(gradient[i], one_.gradient(t)[i], 1e-6) << t << " " << i;
    }
  }

  TestModel one_{kNetwork, kLargest, 3};
};

TEST_P(ReplicatedModelTest, GradientsAreThoseOfTheWholeBatch) {
  Devices devices(GetParam(), one_);
  for (uint64_t step = 0; step < 5; ++step) {
    ExpectTheSame(devices, {kLargest - static_cast<int64_t>(step)}, 10 * step);
    // The devices' weights change while nobody waits for them.
    one_.SgdStep(0.5f);
    devices.SetWeights(one_);
  }
}

TEST_P(ReplicatedModelTest, MicroBatchesAreAddedUp) {
  Devices devices(GetParam(), one_);
  ExpectTheSame(devices, {12, 11, 7}, 1);
  ExpectTheSame(devices, {5, 5}, 2);
}

TEST_P(ReplicatedModelTest, BatchesMayBeSmallerThanThereAreReplicas) {
  Devices devices(GetParam(), one_);
  ExpectTheSame(devices, {12}, 1);
  // What an idle replica has from before counts for nothing, not even when it joins in a later micro-batch.
  ExpectTheSame(devices, {1}, 2);
  ExpectTheSame(devices, {1, 2, 4, 1}, 3);
  ExpectTheSame(devices, {3, 1}, 4);
}

TEST_P(ReplicatedModelTest, TheSameBatchGivesTheSameBits) {
  Devices a(GetParam(), one_), b(GetParam(), one_);
  const Examples examples = RandomExamples(11, 5);
  a.Pass(examples, 1, false, true);
  b.Pass(examples, 1, false, true);
  for (int t = 0; t < one_.tensors(); ++t) EXPECT_EQ(a.Gradient(t), b.Gradient(t)) << t;
}

TEST_P(ReplicatedModelTest, TheNextBatchIsCopiedBesideTheOneAtWork) {
  Devices one(GetParam(), one_), ahead(GetParam(), one_);
  ahead.Stage(RandomExamples(12, 0));
  for (int step = 0; step < 4; ++step) {
    // Fewer and fewer, so that replicas become idle.
    one.Pass(RandomExamples(12 - 3 * step, static_cast<uint64_t>(step)), 1, false, true);
    ASSERT_TRUE((*ahead).BeginStaged().ok());
    ahead.Forward();
    ahead.Stage(RandomExamples(7, 99));  // Not what comes next after all.
    ahead.Stage(RandomExamples(std::max(12 - 3 * (step + 1), 1), static_cast<uint64_t>(step + 1)));
    ahead.Backward(1, false, true);
    for (int t = 0; t < one_.tensors(); ++t) EXPECT_EQ(one.Gradient(t), ahead.Gradient(t)) << step << " " << t;
  }
  ASSERT_TRUE((*ahead).BeginStaged().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition((*ahead).BeginStaged()));
}

INSTANTIATE_TEST_SUITE_P(Replicas, ReplicatedModelTest, ::testing::Values(1, 2, 3, 5));

}  // namespace
}  // namespace rubato::worker
