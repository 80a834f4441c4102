#include "bench/gpu/step_models.h"

namespace rubato::bench {
namespace {

StepModel Mlp(int64_t width, int64_t batch) {
  StepModel model = {.name = "mlp", .batch = batch};
  model.config.set_loss(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY);
  model.config.add_input_shape(width);
  for (int layer = 0; layer < 4; ++layer) {
    model.config.add_layers()->mutable_linear()->set_units(width);
    model.config.add_layers()->mutable_relu();
  }
  model.config.add_layers()->mutable_linear()->set_units(10);
  return model;
}

void AddConv(int64_t filters, int64_t stride, google::protobuf::RepeatedPtrField<v1::LayerConfig>* layers) {
  v1::Conv2dLayer* conv = layers->Add()->mutable_conv2d();
  conv->set_filters(filters);
  conv->set_kernel(3);
  conv->set_stride(stride);
  conv->set_padding(1);
  conv->set_no_bias(true);
  v1::GroupNormLayer* norm = layers->Add()->mutable_group_norm();
  norm->set_groups(4);
  norm->set_epsilon(1e-5);
}

// He et al. 2016 for CIFAR-10: `blocks` blocks of two convolutions in each of three stages.
StepModel ResNet(int blocks, int64_t batch) {
  StepModel model = {.name = "resnet20", .batch = batch};
  model.config.set_loss(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY);
  for (int64_t size : {3, 32, 32}) model.config.add_input_shape(size);
  AddConv(16, 1, model.config.mutable_layers());
  model.config.add_layers()->mutable_relu();
  for (int stage = 0; stage < 3; ++stage) {
    const int64_t filters = int64_t{16} << stage;
    for (int block = 0; block < blocks; ++block) {
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      v1::ResidualLayer* residual = model.config.add_layers()->mutable_residual();
      AddConv(filters, stride, residual->mutable_layers());
      residual->add_layers()->mutable_relu();
      AddConv(filters, 1, residual->mutable_layers());
      if (stride == 2) {
        residual->mutable_projection()->set_stride(stride);
        residual->mutable_projection()->set_norm_groups(4);
      }
      model.config.add_layers()->mutable_relu();
    }
  }
  model.config.add_layers()->mutable_global_average_pool();
  model.config.add_layers()->mutable_linear()->set_units(10);
  return model;
}

StepModel LanguageModel(int blocks, int64_t width, int64_t positions, int64_t batch) {
  StepModel model = {.name = "language_model", .batch = batch};
  model.config.set_loss(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY);
  model.config.add_input_shape(positions);
  v1::EmbeddingLayer* embedding = model.config.add_layers()->mutable_embedding();
  embedding->set_vocabulary(256);
  embedding->set_width(width);
  for (int block = 0; block < blocks; ++block) model.config.add_layers()->mutable_transformer()->set_heads(width / 64);
  model.config.add_layers()->mutable_layer_norm()->set_epsilon(1e-5);
  model.config.add_layers()->mutable_linear()->set_units(256);
  return model;
}

}  // namespace

std::vector<StepModel> StepModels(bool small) {
  if (small) return {Mlp(64, 8), ResNet(1, 2), LanguageModel(1, 64, 16, 2)};
  return {Mlp(4096, 256), ResNet(3, 256), LanguageModel(12, 768, 512, 16)};
}

}  // namespace rubato::bench
