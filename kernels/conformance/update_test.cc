#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "common/optimizer_traits.h"
#include "kernels/conformance/harness.h"
#include "kernels/optimizer/reduce_and_apply.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato::conformance {
namespace {

using Algorithm = v1::OptimizerConfig::Algorithm;

class UpdateTest : public ConformanceTest {
 protected:
  // Numbers of many magnitudes, zeros and subnormals among them.
  Values MixedValues(int64_t n) {
    Values values(n);
    for (double& value : values) {
      value = static_cast<float>(random_.Normal() * std::exp2(static_cast<double>(random_.Below(40)) - 30));
      if (random_.Below(20) == 0) value = 0;
      if (random_.Below(20) == 0) value = std::numeric_limits<float>::denorm_min();
    }
    return values;
  }

  void ExpectBits(const DeviceTensor& actual, const std::vector<float>& expected, const char* what) {
    const Values downloaded = Download(actual);
    const std::vector<float> values(downloaded.begin(), downloaded.end());
    EXPECT_EQ(std::memcmp(values.data(), expected.data(), expected.size() * sizeof(float)), 0) << what;
  }

  // Several updates, against those of the host's function.
  void ExpectSame(const v1::OptimizerConfig& config, int64_t n) {
    const Values initial = MixedValues(n);
    std::vector<float> weights(initial.begin(), initial.end());
    const DeviceTensor device_weights = Upload({n}, initial);
    // Second moments are not negative.
    std::vector<float> slots[2] = {std::vector<float>(n, 0.1f), std::vector<float>(n, 0.1f)};
    DeviceTensor device_slots[2];
    for (int slot = 0; slot < NumSlots(config.algorithm()); ++slot) device_slots[slot] = Upload({n}, Values(n, 0.1f));
    for (int update = 1; update <= 3; ++update) {
      const Values values = MixedValues(n);
      const UpdateRule rule = MakeUpdateRule(config, 0.1, update, /*decays=*/true);
      const DeviceTensor device_gradient = Upload({n}, values);
      EXPECT_OK(backend_->ApplyUpdate(rule, device_gradient, device_weights, device_slots[0], device_slots[1]));
      const std::vector<float> gradient(values.begin(), values.end());
      const ByteSpan piece = BytesOf(gradient.data(), n);
      const EncodedGradient alone = {.pieces = {&piece, 1}};
      float* const host_slots[] = {slots[0].data(), slots[1].data()};
      ReduceAndApply(rule, &alone, 1, weights.data(), weights.data(), host_slots, host_slots, n);
      ExpectBits(device_gradient, gradient, "gradient");
    }
    ExpectBits(device_weights, weights, "weights");
    for (int slot = 0; slot < NumSlots(config.algorithm()); ++slot) ExpectBits(device_slots[slot], slots[slot], "slot");
  }
};

TEST_P(UpdateTest, GiveTheBitsOfTheServersOnEveryDevice) {
  for (Algorithm algorithm : AllAlgorithms()) {
    for (double weight_decay : {0.0, 0.01}) {
      for (int64_t n : {1, 255, 3001}) {
        SCOPED_TRACE(::testing::Message() << v1::OptimizerConfig::Algorithm_Name(algorithm) << ", decay "
                                          << weight_decay << ", " << n << " elements");
        v1::OptimizerConfig config;
        config.set_algorithm(algorithm);
        config.set_weight_decay(weight_decay);
        ExpectSame(config, n);
      }
    }
  }
}

TEST_P(UpdateTest, RefuseWhatDoesNotFit) {
  const DeviceTensor tensor = Upload({2, 3}, Values(6, 1.0)), other = Upload({2, 3}, Values(6, 2.0));
  const DeviceTensor slot = Upload({2, 3}, Values(6, 3.0)), flat = Upload({6}, Values(6, 1.0));
  const DeviceTensor integers = Empty({2, 3}, ElementType::kInt32);
  const auto apply = [&](UpdateFormula formula, const DeviceTensor& gradient, const DeviceTensor& weights,
                         const DeviceTensor& first, const DeviceTensor& second) {
    const absl::Status status =
        backend_->ApplyUpdate({.formula = formula, .learning_rate = 1}, gradient, weights, first, second);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  const auto sgd = UpdateFormula::kSgd, momentum = UpdateFormula::kMomentum, adam = UpdateFormula::kAdam;
  EXPECT_EQ(apply(sgd, flat, tensor, {}, {}), "ApplyUpdate: gradient is float32 [6], expected float32 [2x3]");
  EXPECT_EQ(apply(sgd, tensor, integers, {}, {}), "ApplyUpdate: weights is int32 [2x3], expected a float32 tensor");
  EXPECT_EQ(apply(sgd, other, tensor, slot, {}),
            "ApplyUpdate: first_slot is float32 [2x3], expected none, as the rule's slots are 0");
  EXPECT_EQ(apply(momentum, other, tensor, flat, {}), "ApplyUpdate: first_slot is float32 [6], expected float32 [2x3]");
  EXPECT_EQ(apply(momentum, other, tensor, slot, slot),
            "ApplyUpdate: second_slot is float32 [2x3], expected none, as the rule's slots are 1");
  apply(sgd, {}, tensor, {}, {});
  apply(momentum, other, tensor, {}, {});
  apply(adam, other, tensor, slot, {});
  apply(adam, other, tensor, slot, integers);
  EXPECT_EQ(Download(tensor), Values(6, 1.0));
  EXPECT_EQ(Download(slot), Values(6, 3.0));
}

INSTANTIATE_TEST_SUITE_P(Backends, UpdateTest, ::testing::ValuesIn(AllBackends()), CaseName);

}  // namespace
}  // namespace rubato::conformance
