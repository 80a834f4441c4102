#include "worker/training/local_optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "common/random.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/testing/deferred_backend.h"

namespace rubato::worker {
namespace {

using Floats = std::vector<float>;

class LocalOptimizerTest : public testing::Test {
 protected:
  LocalOptimizerTest() {
    v1::ModelConfig model;
    model.add_input_shape(30);
    model.add_layers()->mutable_linear()->set_units(20);
    model.set_loss(v1::ModelConfig::MEAN_SQUARED_ERROR);
    backend_ = *CreateCpuBackend({});
    model_ = *Model::Create(*BuildModelSpec(model), backend_.get(), {.max_batch = 1});
    for (float& weight : Weights()) weight = static_cast<float>(random_.Normal());
    config_.set_algorithm(v1::OptimizerConfig::ADAM);
    config_.set_learning_rate(0.1);
  }

  std::unique_ptr<LocalOptimizer> Make() { return *LocalOptimizer::Create(config_, model_.get(), backend_.get()); }

  // Of the weight matrix, in place.
  struct Span {
    float* first;
    int64_t count;
    float* begin() const { return first; }
    float* end() const { return first + count; }
    operator Floats() const { return Floats(begin(), end()); }
  };
  Span Weights() { return {backend_->HostPointer(model_->weight(0)), model_->weight(0).elements()}; }
  Span Gradient() { return {backend_->HostPointer(model_->gradient(0)), model_->gradient(0).elements()}; }

  Floats RandomGradient() {
    for (float& value : Gradient()) value = static_cast<float>(random_.Normal());
    return Gradient();
  }
  void SetWeights(const Floats& weights) { std::copy(weights.begin(), weights.end(), Weights().begin()); }

  Random random_{1};
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  v1::OptimizerConfig config_;
};

// Adam by its formulas, in double precision.
struct Adam {
  std::vector<double> m = std::vector<double>(600), v = std::vector<double>(600);
  int t = 0;

  void Apply(const Floats& gradient, std::vector<double>* weights) {
    ++t;
    for (size_t i = 0; i < gradient.size(); ++i) {
      m[i] = 0.9 * m[i] + 0.1 * gradient[i];
      v[i] = 0.999 * v[i] + 0.001 * gradient[i] * gradient[i];
      (*weights)[i] -= 0.1 * (m[i] / (1 - std::pow(0.9, t))) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8);
    }
  }
};

TEST_F(LocalOptimizerTest, UpdatesTheWeightsAndKeepsItsStateFromStepToStep) {
  auto local = Make();
  Adam reference;
  for (int step = 0; step < 3; ++step) {
    // What the servers answered with.
    for (float& weight : Weights()) weight = static_cast<float>(random_.Normal());
    const Floats start = Weights();
    ASSERT_TRUE(local->Start(0).ok());
    std::vector<double> expected(start.begin(), start.end());
    for (int batch = 0; batch < 4; ++batch) {
      reference.Apply(RandomGradient(), &expected);
      ASSERT_TRUE(*local->Update(0, {.step = step}));
    }
    const Floats now = Weights();
    ASSERT_TRUE(local->WriteDelta(0).ok());
    const Floats delta = Gradient();
    for (size_t i = 0; i < now.size(); ++i) {
      ASSERT_NEAR(now[i], expected[i], 1e-5) << "step " << step << ", element " << i;
      ASSERT_EQ(delta[i], start[i] - now[i]);
    }
    EXPECT_EQ(Floats(Weights()), now);
  }
}

TEST_F(LocalOptimizerTest, FollowsTheScheduleInsideAStep) {
  config_.set_algorithm(v1::OptimizerConfig::SGD);
  config_.mutable_schedule()->mutable_step()->set_interval(1);
  config_.mutable_schedule()->mutable_step()->set_factor(0.5);
  auto local = Make();
  ASSERT_TRUE(local->Start(0).ok());
  double moved = 0;
  for (double epoch : {0.5, 1.5, 2.5}) {
    for (float& value : Gradient()) value = 1;
    ASSERT_TRUE(*local->Update(0, {.epoch = epoch}));
    moved += 0.1 * std::pow(0.5, std::floor(epoch));
  }
  ASSERT_TRUE(local->WriteDelta(0).ok());
  EXPECT_NEAR(Gradient().first[0], moved, 1e-6);
}

TEST_F(LocalOptimizerTest, AGradientThatIsNotFiniteChangesNothing) {
  auto local = Make();
  ASSERT_TRUE(local->Start(0).ok());
  RandomGradient();
  Gradient().first[17] = std::numeric_limits<float>::quiet_NaN();
  const Floats before = Weights();
  EXPECT_FALSE(*local->Update(0, {}));
  EXPECT_EQ(Floats(Weights()), before);
}

// What follows a restored step is what would have followed, had there been no such step.
TEST_F(LocalOptimizerTest, RestoresWeightsAndState) {
  const Floats initial = Weights();
  const Floats gradient = RandomGradient();
  auto straight = Make();
  ASSERT_TRUE(straight->Start(0).ok());
  ASSERT_TRUE(*straight->Update(0, {}));
  const Floats expected = Weights();

  SetWeights(initial);
  auto local = Make();
  ASSERT_TRUE(local->Start(0).ok());
  for (int i = 0; i < 3; ++i) {
    RandomGradient();
    ASSERT_TRUE(*local->Update(0, {}));
  }
  ASSERT_TRUE(local->Restore(0).ok());
  EXPECT_EQ(Floats(Weights()), initial);
  ASSERT_TRUE(local->Start(0).ok());
  std::copy(gradient.begin(), gradient.end(), Gradient().begin());
  ASSERT_TRUE(*local->Update(0, {}));
  EXPECT_EQ(Floats(Weights()), expected);
}

TEST_F(LocalOptimizerTest, WeightsThatOverflowLeaveNoTraceInTheState) {
  config_.set_algorithm(v1::OptimizerConfig::MOMENTUM);
  config_.set_learning_rate(1e30);
  auto local = Make();
  const Floats initial = Weights();
  ASSERT_TRUE(local->Start(0).ok());
  for (float& value : Gradient()) value = 1e30f;
  ASSERT_TRUE(*local->Update(0, {}));
  ASSERT_TRUE(local->WriteDelta(0).ok());
  EXPECT_FALSE(std::isfinite(Gradient().first[0]));  // For the servers to refuse.
  EXPECT_EQ(Floats(Weights()), initial);
  ASSERT_TRUE(local->Start(0).ok());
  for (float& value : Gradient()) value = 0;
  ASSERT_TRUE(*local->Update(0, {.step = 1}));
  EXPECT_EQ(Floats(Weights()), initial);
}

TEST_F(LocalOptimizerTest, DecaysWeightsAsTheServersWould) {
  config_.set_algorithm(v1::OptimizerConfig::SGD);
  config_.set_weight_decay(0.5);
  auto local = Make();
  const Floats initial = Weights();
  ASSERT_TRUE(local->Start(0).ok());
  for (float& value : Gradient()) value = 0;
  ASSERT_TRUE(*local->Update(0, {}));
  EXPECT_NEAR(Weights().first[0], initial[0] * 0.95, 1e-6);
  float* bias = backend_->HostPointer(model_->weight(1));
  bias[0] = 1;
  ASSERT_TRUE(local->Start(1).ok());
  ASSERT_TRUE(*local->Update(1, {}));
  EXPECT_EQ(bias[0], 1);  // Biases are exempt.
}

// A device of its own that counts what is copied between it and the host.
class CountingBackend : public DeferredBackend {
 public:
  absl::Status DoCopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) override {
    bytes_ += count * ElementBytes(to.type());
    return DeferredBackend::DoCopyToDevice(to, offset, count, from);
  }
  absl::Status DoCopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) override {
    bytes_ += count * ElementBytes(from.type());
    return DeferredBackend::DoCopyToHost(from, offset, count, to);
  }

  int64_t bytes_ = 0;
};

class DeviceLocalOptimizerTest : public LocalOptimizerTest {
 protected:
  DeviceLocalOptimizerTest() { device_model_ = *Model::Create(model_->spec(), &device_, {.max_batch = 1}); }

  // To and from both, the host's model and the device's.
  void Set(const DeviceTensor& on_host, const DeviceTensor& on_device, const Floats& values) {
    std::copy(values.begin(), values.end(), backend_->HostPointer(on_host));
    ASSERT_TRUE(device_.CopyToDevice(on_device, 0, on_device.elements(), values.data()).ok());
    ASSERT_TRUE(device_.Synchronize().ok());
  }
  void ExpectSame(const DeviceTensor& on_host, const DeviceTensor& on_device) {
    Floats values(on_device.elements());
    ASSERT_TRUE(device_.CopyToHost(on_device, 0, on_device.elements(), values.data()).ok());
    ASSERT_TRUE(device_.Synchronize().ok());
    const float* expected = backend_->HostPointer(on_host);
    EXPECT_EQ(values, Floats(expected, expected + values.size()));
  }

  CountingBackend device_;
  std::unique_ptr<Model> device_model_;
};

TEST_F(DeviceLocalOptimizerTest, ADeviceOfItsOwnGivesTheSameBitsAndCopiesNoTensor) {
  for (auto algorithm : {v1::OptimizerConfig::SGD, v1::OptimizerConfig::MOMENTUM, v1::OptimizerConfig::ADAGRAD,
                         v1::OptimizerConfig::ADAM}) {
    SCOPED_TRACE(v1::OptimizerConfig::Algorithm_Name(algorithm));
    config_.set_algorithm(algorithm);
    auto on_host = Make();
    auto on_device = *LocalOptimizer::Create(config_, device_model_.get(), &device_);
    Set(model_->weight(0), device_model_->weight(0), RandomGradient());
    int64_t copied = 0;
    const auto update = [&](const Floats& gradient) {
      Set(model_->gradient(0), device_model_->gradient(0), gradient);
      const int64_t before = device_.bytes_;
      EXPECT_EQ(*on_device->Update(0, {}), *on_host->Update(0, {}));
      copied += device_.bytes_ - before;
    };
    for (bool restored : {false, true}) {
      const int64_t before = device_.bytes_;
      ASSERT_TRUE(on_host->Start(0).ok() && on_device->Start(0).ok());
      EXPECT_EQ(device_.bytes_, before);
      for (int batch = 0; batch < 2; ++batch) update(RandomGradient());
      Floats spoiled = RandomGradient();
      spoiled[599] = std::numeric_limits<float>::infinity();
      update(spoiled);
      if (!restored) continue;
      const int64_t restoring = device_.bytes_;
      ASSERT_TRUE(on_host->Restore(0).ok() && on_device->Restore(0).ok());
      EXPECT_EQ(device_.bytes_, restoring);
    }
    update(RandomGradient());
    const int64_t before = device_.bytes_;
    ASSERT_TRUE(on_host->WriteDelta(0).ok() && on_device->WriteDelta(0).ok());
    copied += device_.bytes_ - before;
    ExpectSame(model_->weight(0), device_model_->weight(0));
    ExpectSame(model_->gradient(0), device_model_->gradient(0));
    // Whether seven gradients and what is pushed are finite.
    EXPECT_EQ(copied, 8 * static_cast<int64_t>(sizeof(double)));
  }
}

}  // namespace
}  // namespace rubato::worker
