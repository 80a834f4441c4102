#include "worker/nn/model.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato {

Model::Model(const ModelSpec& spec, Backend* backend, const Options& options)
    : spec_(spec), backend_(backend), options_(options), activations_(spec.layers.size() + 1) {}

absl::StatusOr<std::unique_ptr<Model>> Model::Create(const ModelSpec& spec, Backend* backend, const Options& options) {
  if (options.max_batch < 1) {
    return absl::InvalidArgumentError(absl::StrCat("max_batch: ", options.max_batch, " is not at least 1"));
  }
  std::unique_ptr<Model> model(new Model(spec, backend, options));
  RUBATO_RETURN_IF_ERROR(Annotate(model->Allocate(), absl::StrCat("model for batches of ", options.max_batch)));
  return model;
}

absl::Status Model::Allocate() {
  for (const TensorSpec& tensor : spec_.tensors) {
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor weight, backend_->Allocate(tensor.shape));
    weights_.push_back(std::move(weight));
    RUBATO_ASSIGN_OR_RETURN(DeviceTensor gradient, backend_->AllocateForSending(tensor.shape));
    gradients_.push_back(std::move(gradient));
  }
  LayerContext context = {.backend = backend_, .max_batch = options_.max_batch, .seed = options_.seed, .position = 0};
  for (const LayerSpec& layer : spec_.layers) {
    RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<Layer> created, CreateLayer(layer, context, Parameters(layer)));
    layers_.push_back(std::move(created));
    ++context.position;
  }
  const bool has_classes = spec_.loss == v1::ModelConfig::SOFTMAX_CROSS_ENTROPY;
  const Shape outputs = BatchShape(options_.max_batch, spec_.output);
  RUBATO_ASSIGN_OR_RETURN(inputs_, backend_->Allocate(BatchShape(options_.max_batch, spec_.input)));
  RUBATO_ASSIGN_OR_RETURN(labels_, has_classes ? backend_->Allocate({options_.max_batch}, ElementType::kInt32)
                                               : backend_->Allocate(outputs));
  RUBATO_ASSIGN_OR_RETURN(output_gradient_, backend_->Allocate(outputs));
  RUBATO_ASSIGN_OR_RETURN(sums_, backend_->Allocate({2}, ElementType::kFloat64));
  return absl::OkStatus();
}

LayerParameters Model::Parameters(const LayerSpec& layer) const {
  LayerParameters parameters;
  if (!layer.tensors.empty()) {
    parameters.weight = weights_[layer.tensors[0]];
    parameters.weight_gradient = gradients_[layer.tensors[0]];
  }
  if (layer.tensors.size() > 1) {
    parameters.bias = weights_[layer.tensors[1]];
    parameters.bias_gradient = gradients_[layer.tensors[1]];
  }
  return parameters;
}

absl::Status Model::CheckBatch(v1::ModelConfig::Loss loss, int64_t examples) const {
  if (loss != spec_.loss) {
    return absl::InvalidArgumentError(
        absl::StrCat("labels: the loss is ", v1::ModelConfig::Loss_Name(spec_.loss), ", and these are ",
                     loss == v1::ModelConfig::SOFTMAX_CROSS_ENTROPY ? "class numbers" : "vectors"));
  }
  if (examples < 1 || examples > options_.max_batch) {
    return absl::InvalidArgumentError(absl::StrCat("examples: ", examples, " is not in 1 to ", options_.max_batch));
  }
  return absl::OkStatus();
}

absl::Status Model::SetInputs(const float* inputs, const int32_t* classes, int64_t examples) {
  RUBATO_RETURN_IF_ERROR(CheckBatch(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY, examples));
  const int64_t count = NumElements(spec_.output);
  for (int64_t i = 0; i < examples; ++i) {
    if (classes[i] >= 0 && classes[i] < count) continue;
    return absl::InvalidArgumentError(absl::StrCat("labels: example ", i, " of the batch has class ", classes[i],
                                                   "; the model's last layer has classes 0 to ", count - 1));
  }
  return BeginBatch(inputs, classes, examples, examples);
}

absl::Status Model::SetInputs(const float* inputs, const float* targets, int64_t examples) {
  RUBATO_RETURN_IF_ERROR(CheckBatch(v1::ModelConfig::MEAN_SQUARED_ERROR, examples));
  return BeginBatch(inputs, targets, examples * NumElements(spec_.output), examples);
}

absl::Status Model::BeginBatch(const float* inputs, const void* labels, int64_t labels_count, int64_t examples) {
  examples_ = examples;
  next_forward_ = 0;
  next_backward_ = -1;
  activations_[0] = inputs_.Rows(examples);
  RUBATO_RETURN_IF_ERROR(backend_->CopyToDevice(inputs_, 0, activations_[0].elements(), inputs));
  RUBATO_RETURN_IF_ERROR(backend_->CopyToDevice(labels_, 0, labels_count, labels));
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<Event> copied, backend_->Record());
  return copied->Wait();
}

absl::Status Model::ForwardLayer(int layer, bool training, uint64_t dropout_stream) {
  if (examples_ == 0) return absl::FailedPreconditionError("ForwardLayer: no batch has been set");
  if (layer != next_forward_ || layer >= layers()) {
    return absl::FailedPreconditionError(absl::StrCat("ForwardLayer: layer ", layer, " was asked for and layer ",
                                                      next_forward_, " of ", layers(), " is next"));
  }
  absl::StatusOr<DeviceTensor> y =
      layers_[layer]->Forward(activations_[layer], {.training = training, .dropout_stream = dropout_stream});
  if (!y.ok()) return Annotate(y.status(), absl::StrCat("forward, layer \"", spec_.layers[layer].name, "\""));
  activations_[layer + 1] = *std::move(y);
  ++next_forward_;
  return absl::OkStatus();
}

absl::StatusOr<LossResult> Model::RunLoss(float gradient_scale, const DeviceTensor& gradient) {
  if (next_forward_ != layers()) {
    return absl::FailedPreconditionError(
        absl::StrCat("ComputeLoss: layer ", next_forward_, " of ", layers(), " has not run"));
  }
  const DeviceTensor labels = labels_.Rows(examples_);
  if (spec_.loss == v1::ModelConfig::SOFTMAX_CROSS_ENTROPY) {
    RUBATO_RETURN_IF_ERROR(backend_->SoftmaxCrossEntropy(output(), labels, gradient_scale, gradient, sums_));
  } else {
    RUBATO_RETURN_IF_ERROR(backend_->MeanSquaredError(output(), labels, gradient_scale, gradient, sums_));
  }
  double sums[2] = {};
  RUBATO_RETURN_IF_ERROR(backend_->CopyToHost(sums_, 0, 2, sums));
  RUBATO_RETURN_IF_ERROR(backend_->Synchronize());
  return LossResult{.loss_sum = sums[0], .correct = static_cast<int64_t>(sums[1])};
}

absl::StatusOr<LossResult> Model::ComputeLoss(float gradient_scale) {
  upstream_ = output_gradient_.Rows(examples_);
  RUBATO_ASSIGN_OR_RETURN(LossResult result, RunLoss(gradient_scale, upstream_));
  next_backward_ = layers() - 1;
  return result;
}

absl::Status Model::BackwardLayer(int layer, bool accumulate) {
  if (next_backward_ < 0 || layer != next_backward_) {
    return absl::FailedPreconditionError(absl::StrCat("BackwardLayer: layer ", layer, " was asked for and ",
                                                      next_backward_ < 0
                                                          ? std::string("the loss has not been computed")
                                                          : absl::StrCat("layer ", next_backward_, " is next")));
  }
  absl::StatusOr<DeviceTensor> dx = layers_[layer]->Backward(activations_[layer], activations_[layer + 1], upstream_,
                                                             {.accumulate = accumulate, .input_gradient = layer > 0});
  next_backward_ = -1;
  if (!dx.ok()) return Annotate(dx.status(), absl::StrCat("backward, layer \"", spec_.layers[layer].name, "\""));
  upstream_ = *std::move(dx);
  next_backward_ = layer - 1;
  return absl::OkStatus();
}

absl::StatusOr<LossResult> Model::EvaluateBatch() {
  for (int i = 0; i < layers(); ++i) RUBATO_RETURN_IF_ERROR(ForwardLayer(i, false, 0));
  return RunLoss(0, DeviceTensor());
}

}  // namespace rubato
