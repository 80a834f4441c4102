#include "worker/nn/model_test_util.h"

#include <google/protobuf/text_format.h>

#include "common/random.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/optimizer/initializer.h"

namespace rubato::worker {

TestModel::TestModel(const std::string& config, int64_t max_batch, uint64_t seed) {
  v1::ModelConfig model_config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(config, &model_config)) << config;
  absl::StatusOr<ModelSpec> spec = BuildModelSpec(model_config);
  EXPECT_TRUE(spec.ok()) << spec.status();
  absl::StatusOr<std::unique_ptr<Backend>> backend = CreateCpuBackend({});
  EXPECT_TRUE(backend.ok()) << backend.status();
  backend_ = *std::move(backend);
  absl::StatusOr<std::unique_ptr<Model>> model =
      Model::Create(*spec, backend_.get(), {.max_batch = max_batch, .seed = seed});
  EXPECT_TRUE(model.ok()) << model.status();
  model_ = *std::move(model);
  Random random(seed, StreamId("test biases"));
  for (int i = 0; i < tensors(); ++i) {
    const TensorSpec& tensor = model_->spec().tensors[i];
    const int64_t n = NumElements(tensor.shape);
    InitializeSlice(tensor, i, seed, 0, n, weight(i));
    for (int64_t j = 0; j < n && !tensor.decays; ++j) weight(i)[j] += 0.1f * static_cast<float>(random.Normal());
  }
}

LossResult TestModel::Forward(bool training, uint64_t dropout_stream, float gradient_scale) {
  for (int i = 0; i < model_->layers(); ++i) {
    absl::Status status = model_->ForwardLayer(i, training, dropout_stream);
    EXPECT_TRUE(status.ok()) << status;
  }
  absl::StatusOr<LossResult> loss = model_->ComputeLoss(gradient_scale);
  EXPECT_TRUE(loss.ok()) << loss.status();
  return *loss;
}

void TestModel::Backward(bool accumulate) {
  for (int i = model_->layers(); i-- > 0;) {
    absl::Status status = model_->BackwardLayer(i, accumulate);
    EXPECT_TRUE(status.ok()) << status;
  }
}

void TestModel::SgdStep(float learning_rate) {
  for (int i = 0; i < tensors(); ++i) {
    absl::Status status = backend_->Axpy(-learning_rate, model_->gradient(i), model_->weight(i));
    EXPECT_TRUE(status.ok()) << status;
  }
}

}  // namespace rubato::worker
