// Models on a GPU against the same models on the CPU: losses and gradients, step after step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/random.h"
#include "kernels/backend_cuda.h"
#include "worker/nn/model_test_util.h"

namespace rubato::worker {
namespace {

constexpr int64_t kBatch = 6;

struct Case {
  std::string name, config;
  int64_t inputs, labels, classes;
  // Inputs are numbers below this instead of any.
  int64_t vocabulary = 0;
  // How the GPU rounds, and what that may change, relative to the largest gradient of a tensor.
  MatrixPrecision precision = MatrixPrecision::kFloat32;
  double tolerance = 1e-4;
  // At which weights move.
  float rate = 0.1f;
};

const Case kCases[] = {
    {"Perceptron",
     R"pb(
       input_shape: 20
       layers { linear { units: 16 } }
       layers { tanh {} }
       layers { dropout { rate: 0.3 } }
       layers { linear { units: 5 } }
       loss: SOFTMAX_CROSS_ENTROPY
     )pb",
     20, 1, 5},
    {"Convolutions",
     R"pb(
       input_shape: 3
       input_shape: 8
       input_shape: 8
       layers { conv2d { filters: 4 kernel: 3 padding: 1 } }
       layers { relu {} }
       layers { max_pool2d { window: 2 stride: 2 } }
       layers { flatten {} }
       layers { linear { units: 4 } }
       loss: SOFTMAX_CROSS_ENTROPY
     )pb",
     192, 1, 4},
    {"LanguageModel",
     R"pb(
       input_shape: 6
       layers { embedding { vocabulary: 11 width: 8 } }
       layers { transformer { heads: 2 dropout: 0.1 } }
       layers { layer_norm {} }
       layers { linear { units: 11 } }
       loss: SOFTMAX_CROSS_ENTROPY
     )pb",
     6, 6, 11, 11},
    // Heads wide enough for fused attention.
    {"LanguageModelInBf16",
     R"pb(
       input_shape: 6
       layers { embedding { vocabulary: 11 width: 32 } }
       layers { transformer { heads: 2 dropout: 0.1 } }
       layers { layer_norm {} }
       layers { linear { units: 11 } }
       loss: SOFTMAX_CROSS_ENTROPY
     )pb",
     6, 6, 11, 11, MatrixPrecision::kBf16, 2e-2},
    {"Recommender",
     R"pb(
       input_shape: 20
       layers {
         branches {
           branches {
             end: 8
             layers { linear { units: 4 } }
             layers { tanh {} }
           }
           branches { begin: 8 }
           branches {
             begin: 8
             layers { cross { layers: 2 } }
             layers { linear { units: 4 } }
           }
           branches {
             begin: 8
             layers { factorization_machine { width: 4 } }
             layers { linear { units: 4 } }
           }
         }
       }
       layers { dot_interaction { width: 4 } }
       layers { linear { units: 1 } }
       loss: BINARY_CROSS_ENTROPY
     )pb",
     20, 1, 2, 0, MatrixPrecision::kFloat32, 1e-4, 0.01f},
    {"RecommenderInBf16",
     R"pb(
       input_shape: 20
       layers {
         branches {
           branches {
             end: 8
             layers { linear { units: 4 } }
             layers { tanh {} }
           }
           branches { begin: 8 }
         }
       }
       layers { dot_interaction { width: 4 } }
       layers { linear { units: 1 no_bias: true } }
       loss: BINARY_CROSS_ENTROPY
     )pb",
     20, 1, 2, 0, MatrixPrecision::kBf16, 2e-2, 0.2f},
    // Without ReLU, at whose edge rounding decides.
    {"ResidualInFp16",
     R"pb(
       input_shape: 3
       input_shape: 8
       input_shape: 8
       layers { conv2d { filters: 4 kernel: 3 padding: 1 no_bias: true } }
       layers { group_norm { groups: 2 } }
       layers { gelu {} }
       layers {
         residual {
           layers { conv2d { filters: 8 kernel: 3 stride: 2 padding: 1 no_bias: true } }
           layers { group_norm { groups: 2 } }
           layers { tanh {} }
           projection { stride: 2 norm_groups: 2 }
         }
       }
       layers { average_pool2d { window: 2 stride: 2 } }
       layers { global_average_pool {} }
       layers { linear { units: 4 } }
       loss: SOFTMAX_CROSS_ENTROPY
     )pb",
     192, 1, 4, 0, MatrixPrecision::kFp16, 1e-2},
};

struct Batch {
  std::vector<float> inputs;
  std::vector<int32_t> classes;
};

Batch MakeBatch(const Case& model, int64_t examples, Random* random) {
  Batch batch;
  for (int64_t i = 0; i < examples * model.inputs; ++i) {
    batch.inputs.push_back(model.vocabulary > 0 ? static_cast<float>(random->Below(model.vocabulary))
                                                : static_cast<float>(random->Normal()));
  }
  for (int64_t i = 0; i < examples * model.labels; ++i) {
    batch.classes.push_back(static_cast<int32_t>(random->Below(model.classes)));
  }
  return batch;
}

class CudaModelTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Backend>> gpu = CreateCudaBackend({.precision = GetParam().precision});
    if (absl::IsFailedPrecondition(gpu.status())) GTEST_SKIP() << gpu.status().message();
    ASSERT_OK(gpu.status());
    gpu_ = *std::move(gpu);
    plain_ = *CreateCudaBackend({.precision = GetParam().precision, .graphs = false});
  }

  std::unique_ptr<Model> OnGpu(Backend* backend) {
    absl::StatusOr<std::unique_ptr<Model>> model =
        Model::Create(host_->spec(), backend, {.max_batch = kBatch, .seed = 1});
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }

  // The weights of host_.
  void SetWeights(Backend* backend, Model* model) {
    for (int i = 0; i < host_.tensors(); ++i) {
      const DeviceTensor& weight = model->weight(i);
      ASSERT_OK(backend->CopyToDevice(weight, 0, weight.elements(), host_.weight(i)));
    }
  }

  // A forward and a backward pass; the latter's gradients are added to those that are there.
  void Pass(Model* model, const Batch& batch, uint64_t dropout_stream, bool accumulate, double* loss) {
    const auto examples = static_cast<int64_t>(batch.inputs.size()) / GetParam().inputs;
    ASSERT_OK(model->SetInputs(batch.inputs.data(), batch.classes.data(), examples));
    for (int i = 0; i < model->layers(); ++i) ASSERT_OK(model->ForwardLayer(i, true, dropout_stream));
    absl::StatusOr<LossResult> result = model->ComputeLoss(1.0f / kBatch);
    ASSERT_OK(result.status());
    *loss = result->loss_sum;
    for (int i = model->layers(); i-- > 0;) ASSERT_OK(model->BackwardLayer(i, accumulate));
  }

  std::vector<float> Gradient(Backend* backend, const Model& model, int tensor) {
    std::vector<float> values(model.gradient(tensor).elements());
    EXPECT_TRUE(backend->CopyToHost(model.gradient(tensor), 0, model.gradient(tensor).elements(), values.data()).ok());
    EXPECT_TRUE(backend->Synchronize().ok());
    return values;
  }

  std::unique_ptr<Backend> gpu_, plain_;
  TestModel host_{GetParam().config, kBatch, 1};
  Random random_{5};
};

// In every third step the batch is not full, and every other step has two micro-batches.
TEST_P(CudaModelTest, ComputesWhatTheCpuComputes) {
  const std::unique_ptr<Model> model = OnGpu(gpu_.get()), plain = OnGpu(plain_.get());
  for (uint64_t step = 0; step < 9; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    SetWeights(gpu_.get(), model.get());
    SetWeights(plain_.get(), plain.get());
    for (uint64_t micro_batch = 0; micro_batch < 1 + step % 2; ++micro_batch) {
      const Batch batch = MakeBatch(GetParam(), step % 3 == 2 ? kBatch - 2 : kBatch, &random_);
      double expected = 0, loss = 0, plain_loss = 0;
      Pass(&*host_, batch, 2 * step + micro_batch, micro_batch > 0, &expected);
      Pass(model.get(), batch, 2 * step + micro_batch, micro_batch > 0, &loss);
      Pass(plain.get(), batch, 2 * step + micro_batch, micro_batch > 0, &plain_loss);
      EXPECT_NEAR(loss, expected, GetParam().tolerance * std::abs(expected));
      // Graphs change no bit.
      EXPECT_EQ(loss, plain_loss);
    }
    for (int i = 0; i < host_.tensors(); ++i) {
      const std::vector<float> gradient = Gradient(gpu_.get(), *model, i);
      EXPECT_EQ(gradient, Gradient(plain_.get(), *plain, i)) << "tensor " << i;
      float largest = 0;
      for (size_t j = 0; j < gradient.size(); ++j) largest = std::max(largest, std::abs(host_.gradient(i)[j]));
      for (size_t j = 0; j < gradient.size(); ++j) {
        ASSERT_NEAR(gradient[j], host_.gradient(i)[j], GetParam().tolerance * largest)
            << "tensor " << i << ", element " << j;
      }
    }
    host_.SgdStep(GetParam().rate);
  }
}

// Each with weights of its own from the same beginning.
TEST_P(CudaModelTest, TrainsAsTheCpuTrains) {
  const std::unique_ptr<Model> model = OnGpu(gpu_.get());
  SetWeights(gpu_.get(), model.get());
  double first = 0, last = 0;
  for (uint64_t step = 0; step < 100; ++step) {
    // A few batches that come again, so that there is something to learn.
    Random random(7, step % 5);
    const Batch batch = MakeBatch(GetParam(), kBatch, &random);
    double expected = 0, loss = 0;
    Pass(&*host_, batch, step, false, &expected);
    Pass(model.get(), batch, step, false, &loss);
    ASSERT_NEAR(loss / kBatch, expected / kBatch, 10 * GetParam().tolerance) << "step " << step;
    host_.SgdStep(GetParam().rate);
    for (int i = 0; i < host_.tensors(); ++i)
      ASSERT_OK(gpu_->Axpy(-GetParam().rate, model->gradient(i), model->weight(i)));
    if (step == 0) first = loss;
    last = loss;
  }
  EXPECT_LT(last, 0.8 * first);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaModelTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace rubato::worker
