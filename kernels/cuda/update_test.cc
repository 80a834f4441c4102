#include "kernels/cuda/update.h"

#include "common/random.h"
#include "kernels/cuda/test_device.h"
#include "kernels/optimizer/reduce_and_apply.h"

namespace rubato::cuda {
namespace {

class UpdateTest : public DeviceTest {
 protected:
  std::vector<float> Values(int64_t n) {
    std::vector<float> values(n);
    for (float& value : values) value = static_cast<float>(random_.Normal());
    return values;
  }

  Random random_{31};
};

TEST_F(UpdateTest, GivesTheBitsOfTheHost) {
  constexpr int64_t kElements = 3001;
  for (auto algorithm : {v1::OptimizerConfig::SGD, v1::OptimizerConfig::MOMENTUM, v1::OptimizerConfig::NESTEROV,
                         v1::OptimizerConfig::ADAGRAD, v1::OptimizerConfig::RMSPROP, v1::OptimizerConfig::ADAM,
                         v1::OptimizerConfig::ADAMW}) {
    for (double weight_decay : {0.0, 0.01}) {
      SCOPED_TRACE(::testing::Message() << v1::OptimizerConfig::Algorithm_Name(algorithm) << ", " << weight_decay);
      v1::OptimizerConfig config;
      config.set_algorithm(algorithm);
      config.set_weight_decay(weight_decay);
      std::vector<float> weights = Values(kElements);
      std::vector<std::vector<float>> slots(2, std::vector<float>(kElements, 0.1f));
      float* device_weights = Upload(weights);
      float* const device_slots[] = {Upload(slots[0]), Upload(slots[1])};
      float* const host_slots[] = {slots[0].data(), slots[1].data()};
      for (int update = 1; update <= 3; ++update) {
        const std::vector<float> gradient = Values(kElements);
        const UpdateRule rule = MakeUpdateRule(config, 0.1, update, true);
        ASSERT_TRUE(ApplyUpdate(stream(), rule, Upload(gradient), kElements, device_weights, device_slots).ok());
        const GradientPiece piece = {gradient.data(), kElements * static_cast<int64_t>(sizeof(float))};
        const GradientSpan span = {.pieces = &piece, .count = 1, .weight = 1, .codec = v1::NONE};
        ReduceAndApply(rule, &span, 1, weights.data(), weights.data(), host_slots, kElements);
      }
      EXPECT_EQ(Download(device_weights, kElements), weights);
      EXPECT_EQ(Download(device_slots[0], kElements), slots[0]);
      EXPECT_EQ(Download(device_slots[1], kElements), slots[1]);
    }
  }
}

}  // namespace
}  // namespace rubato::cuda
