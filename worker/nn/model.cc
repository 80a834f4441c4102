#include "worker/nn/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato::worker {
namespace {

absl::Status WrongPart(const char* call, int layer, int part, int next) {
  return absl::FailedPreconditionError(
      absl::StrCat(call, ": part ", part, " of layer ", layer, " was asked for and part ", next, " is next"));
}

}  // namespace

Model::Model(const ModelSpec& spec, Backend* backend, const Options& options)
    : spec_(spec),
      backend_(backend),
      options_(options),
      forward_passes_(spec.layers.size()),
      backward_passes_(spec.layers.size()),
      activations_(spec.layers.size() + 1),
      output_gradients_(spec.layers.size()) {}

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
    layers_.emplace_back();
    joins_.emplace_back();
    if (IsJoin(layer)) {
      RUBATO_ASSIGN_OR_RETURN(joins_.back(), NewJoin(layer, context));
    } else {
      RUBATO_ASSIGN_OR_RETURN(layers_.back(), CreateLayer(layer, context, Parameters(layer)));
    }
    ++context.position;
  }
  return AllocateBatch();
}

absl::StatusOr<std::unique_ptr<Join>> Model::NewJoin(const LayerSpec& layer, const LayerContext& context) const {
  JoinOptions options = {.shares_gradient = layer.config.has_residual() && SharesGradient(layer, context.position)};
  for (int input : JoinedLayers(layer)) {
    const bool is_model_input = input == kModelInput;
    options.inputs.push_back({.shape = is_model_input ? spec_.input : spec_.layers[input].output,
                              .needs_gradient = !is_model_input || !spec_.tables.empty()});
  }
  return CreateJoin(layer, context, options);
}

int64_t Model::WorkspaceBytes(const WorkspaceRules& rules) const {
  int64_t bytes = 0;
  for (const std::unique_ptr<Layer>& layer : layers_) {
    if (layer != nullptr) bytes = std::max(bytes, layer->WorkspaceBytes(rules, options_.max_batch));
  }
  return bytes;
}

bool Model::SharesGradient(const LayerSpec& sum, int position) const {
  // The layer that comes next in the backward pass takes the gradient. Only then do others add to what is the other's.
  const int next = std::max(sum.source, sum.shortcut);
  return sum.shortcut != kModelInput && next == position - 1 && layers_[next] != nullptr &&
         layers_[next]->keeps_output_gradient();
}

absl::Status Model::AllocateBatch() {
  const int64_t batch = options_.max_batch;
  const bool has_classes = spec_.has_classes();
  const Shape outputs = BatchShape(batch, spec_.output);
  const ElementType type = backend_->ActivationType();
  RUBATO_ASSIGN_OR_RETURN(output_gradient_, backend_->Allocate(outputs));
  if (type != ElementType::kFloat32) {
    RUBATO_ASSIGN_OR_RETURN(activation_gradient_, backend_->Allocate(outputs, type));
    RUBATO_ASSIGN_OR_RETURN(float_output_, backend_->Allocate(outputs));
    if (spec_.vocabulary == 0) {
      RUBATO_ASSIGN_OR_RETURN(activation_input_, backend_->Allocate(BatchShape(batch, spec_.input), type));
    }
  }
  RUBATO_ASSIGN_OR_RETURN(
      batch_, BatchMemory::Create({.backend = backend_,
                                   .on_host = backend_->HostPointer(output_gradient_) != nullptr,
                                   .inputs = BatchShape(batch, spec_.input),
                                   .labels = has_classes ? Shape{batch, spec_.labels_per_example()} : outputs,
                                   .input_type = spec_.vocabulary > 0 ? ElementType::kInt32 : ElementType::kFloat32,
                                   .label_type = has_classes ? ElementType::kInt32 : ElementType::kFloat32}));
  RUBATO_ASSIGN_OR_RETURN(loss_sums_, backend_->Allocate({2}, ElementType::kFloat64));
  RUBATO_ASSIGN_OR_RETURN(squares_, backend_->Allocate({1}, ElementType::kFloat64));
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

absl::Status Model::CheckBatch(bool has_classes, int64_t examples) const {
  if (has_classes != spec_.has_classes()) {
    return absl::InvalidArgumentError(absl::StrCat("labels: the loss is ", v1::ModelConfig::Loss_Name(spec_.loss),
                                                   ", and these are ", has_classes ? "class numbers" : "vectors"));
  }
  if (examples < 1 || examples > options_.max_batch) {
    return absl::InvalidArgumentError(absl::StrCat("examples: ", examples, " is not in 1 to ", options_.max_batch));
  }
  return absl::OkStatus();
}

absl::Status Model::StageInputs(const float* inputs, const int32_t* classes, int64_t examples) {
  RUBATO_RETURN_IF_ERROR(CheckBatch(true, examples));
  const int64_t labels = spec_.labels_per_example(), count = spec_.classes();
  for (int64_t i = 0; i < examples * labels; ++i) {
    if (classes[i] >= 0 && classes[i] < count) continue;
    return absl::InvalidArgumentError(absl::StrCat("labels: example ", i / labels, " of the batch has class ",
                                                   classes[i], "; the model's last layer has classes 0 to ",
                                                   count - 1));
  }
  return Stage(inputs, classes, examples);
}

absl::Status Model::StageInputs(const float* inputs, const float* targets, int64_t examples) {
  RUBATO_RETURN_IF_ERROR(CheckBatch(false, examples));
  return Stage(inputs, targets, examples);
}

absl::Status Model::ReadTokens(const float* inputs, int64_t count) {
  const int64_t positions = NumElements(spec_.input);
  tokens_.resize(count);
  for (int64_t i = 0; i < count; ++i) {
    // Written so that NaN is refused.
    const bool good = inputs[i] >= 0 && inputs[i] < static_cast<float>(spec_.vocabulary);
    tokens_[i] = good ? static_cast<int32_t>(inputs[i]) : 0;
    if (good && static_cast<float>(tokens_[i]) == inputs[i]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("inputs: example ", i / positions, " of the batch has ", inputs[i], " at position ", i % positions,
                     "; the model's embedding takes whole numbers from 0 to ", spec_.vocabulary - 1));
  }
  return absl::OkStatus();
}

absl::Status Model::Stage(const float* inputs, const void* labels, int64_t examples) {
  const void* elements = inputs;
  if (spec_.vocabulary > 0) {
    RUBATO_RETURN_IF_ERROR(ReadTokens(inputs, examples * NumElements(spec_.input)));
    elements = tokens_.data();
  }
  return batch_->Stage({.inputs = elements, .labels = labels, .count = examples});
}

absl::Status Model::BeginStaged() {
  RUBATO_RETURN_IF_ERROR(batch_->Begin());
  next_forward_ = next_forward_part_ = 0;
  next_backward_ = -1;
  activations_[0] = batch_->inputs();
  if (activation_input_.empty()) return absl::OkStatus();
  activations_[0] = activation_input_.Rows(batch_->count());
  return backend_->Copy(batch_->inputs(), activations_[0]);
}

absl::Status Model::SetInputs(const float* inputs, const int32_t* classes, int64_t examples) {
  RUBATO_RETURN_IF_ERROR(StageInputs(inputs, classes, examples));
  return BeginStaged();
}

absl::Status Model::SetInputs(const float* inputs, const float* targets, int64_t examples) {
  RUBATO_RETURN_IF_ERROR(StageInputs(inputs, targets, examples));
  return BeginStaged();
}

int Model::parts(int layer) const {
  const bool is_layer = layer >= 0 && layer < layers() && layers_[layer] != nullptr;
  return is_layer ? layers_[layer]->parts() : 1;
}

bool Model::Repeats(int layer) const {
  return batch_->count() == options_.max_batch && layers_[layer]->repeats() && parts(layer) == 1;
}

std::vector<DeviceTensor> Model::JoinInputs(int layer) const {
  std::vector<DeviceTensor> inputs;
  for (int input : JoinedLayers(spec_.layers[layer])) inputs.push_back(activations_[input + 1]);
  return inputs;
}

absl::StatusOr<DeviceTensor> Model::RunForward(int layer, const ForwardPass& pass) {
  if (joins_[layer] != nullptr) return joins_[layer]->Forward(JoinInputs(layer));
  const DeviceTensor& x = activations_[spec_.layers[layer].source + 1];
  const auto run = [&] { return layers_[layer]->Forward(x, pass); };
  return Repeats(layer) ? forward_passes_[layer].Run(backend_, {.x = x.buffer()}, run) : run();
}

absl::Status Model::ForwardLayer(int layer, bool training, uint64_t dropout_stream) {
  for (int part = 0; part < parts(layer); ++part) {
    RUBATO_RETURN_IF_ERROR(ForwardPart(layer, part, training, dropout_stream));
  }
  return absl::OkStatus();
}

absl::Status Model::ForwardPart(int layer, int part, bool training, uint64_t dropout_stream) {
  if (batch_->count() == 0) return absl::FailedPreconditionError("ForwardLayer: no batch has been set");
  if (layer != next_forward_ || layer >= layers()) {
    return absl::FailedPreconditionError(absl::StrCat("ForwardLayer: layer ", layer, " was asked for and layer ",
                                                      next_forward_, " of ", layers(), " is next"));
  }
  if (part != next_forward_part_) return WrongPart("ForwardPart", layer, part, next_forward_part_);
  absl::StatusOr<DeviceTensor> y =
      RunForward(layer, {.part = part, .training = training, .dropout_stream = dropout_stream});
  if (!y.ok()) return Annotate(y.status(), absl::StrCat("forward, layer \"", spec_.layers[layer].name, "\""));
  if (++next_forward_part_ < parts(layer)) return absl::OkStatus();
  next_forward_part_ = 0;
  activations_[layer + 1] = *std::move(y);
  ++next_forward_;
  return absl::OkStatus();
}

absl::StatusOr<DeviceTensor> Model::FloatOutput() {
  if (output().type() == ElementType::kFloat32) return output();
  DeviceTensor floats = float_output_.Rows(batch_->count());
  RUBATO_RETURN_IF_ERROR(backend_->Copy(output(), floats));
  return floats;
}

absl::Status Model::RunLoss(float gradient_scale, const DeviceTensor& gradient) {
  if (next_forward_ != layers()) {
    return absl::FailedPreconditionError(
        absl::StrCat("ComputeLoss: layer ", next_forward_, " of ", layers(), " has not run"));
  }
  RUBATO_ASSIGN_OR_RETURN(const DeviceTensor outputs, FloatOutput());
  if (spec_.has_classes()) {
    const bool is_binary = spec_.loss == v1::ModelConfig::BINARY_CROSS_ENTROPY;
    const auto loss = is_binary ? &Backend::BinaryCrossEntropy : &Backend::SoftmaxCrossEntropy;
    const int64_t columns = spec_.output.back();
    const DeviceTensor logits = AsRows(outputs, columns);
    const DeviceTensor dlogits = gradient.empty() ? gradient : AsRows(gradient, columns);
    RUBATO_RETURN_IF_ERROR((backend_->*loss)(logits, batch_->labels().Reshaped({logits.rows()}),
                                             gradient_scale / static_cast<float>(LossTerms()), dlogits, loss_sums_));
  } else {
    RUBATO_RETURN_IF_ERROR(backend_->MeanSquaredError(outputs, batch_->labels(), gradient_scale, gradient, loss_sums_));
  }
  if (host_sums_ == nullptr) {
    RUBATO_ASSIGN_OR_RETURN(host_sums_, backend_->AllocateHost(loss_sums_.elements() * sizeof(double)));
  }
  RUBATO_RETURN_IF_ERROR(backend_->CopyToHost(loss_sums_, 0, loss_sums_.elements(), host_sums_.get()));
  RUBATO_ASSIGN_OR_RETURN(loss_copied_, backend_->Record());
  return absl::OkStatus();
}

int64_t Model::LossTerms() const { return spec_.has_classes() ? spec_.labels_per_example() : 1; }

absl::StatusOr<LossResult> Model::AwaitLoss() {
  if (loss_copied_ == nullptr) return absl::FailedPreconditionError("AwaitLoss: EnqueueLoss comes first");
  RUBATO_RETURN_IF_ERROR(loss_copied_->Wait());
  const auto terms = static_cast<double>(LossTerms());
  const auto* const sums = static_cast<const double*>(host_sums_.get());
  return LossResult{.loss_sum = sums[0] / terms, .correct = sums[1] / terms};
}

absl::StatusOr<LossResult> Model::ComputeLoss(float gradient_scale) {
  RUBATO_RETURN_IF_ERROR(EnqueueLoss(gradient_scale));
  return AwaitLoss();
}

absl::Status Model::EnqueueLoss(float gradient_scale) {
  DeviceTensor gradient = output_gradient_.Rows(batch_->count());
  RUBATO_RETURN_IF_ERROR(RunLoss(gradient_scale, gradient));
  if (!activation_gradient_.empty()) {
    gradient = activation_gradient_.Rows(batch_->count());
    RUBATO_RETURN_IF_ERROR(backend_->Copy(output_gradient_.Rows(batch_->count()), gradient));
  }
  // What an unfinished batch has left is not of this one.
  std::fill(output_gradients_.begin(), output_gradients_.end(), DeviceTensor());
  output_gradients_.back() = gradient;
  input_gradient_ = DeviceTensor();
  next_backward_ = layers() - 1;
  next_backward_part_ = 0;
  deferred_ = {};
  return absl::OkStatus();
}

absl::Status Model::AddOutputGradient(int layer, const DeviceTensor& gradient) {
  if (gradient.empty() || (layer == kModelInput && spec_.tables.empty())) return absl::OkStatus();
  DeviceTensor& sum = GradientOf(layer);
  if (!sum.empty()) return backend_->Axpy(1, gradient, sum);
  sum = gradient;
  return absl::OkStatus();
}

absl::Status Model::RunJoinBackward(int layer, const DeviceTensor& dy) {
  const std::vector<int> inputs = JoinedLayers(spec_.layers[layer]);
  std::vector<DeviceTensor> gradients;
  for (int input : inputs) gradients.push_back(GradientOf(input));
  RUBATO_RETURN_IF_ERROR(joins_[layer]->Backward(JoinInputs(layer), dy, &gradients));
  for (size_t i = 0; i < inputs.size(); ++i) GradientOf(inputs[i]) = std::move(gradients[i]);
  return absl::OkStatus();
}

absl::Status Model::RunBackward(int layer, int part, bool accumulate) {
  const LayerSpec& spec = spec_.layers[layer];
  const bool is_last = part + 1 == parts(layer);
  const DeviceTensor dy = is_last ? std::exchange(output_gradients_[layer], DeviceTensor()) : output_gradients_[layer];
  if (joins_[layer] != nullptr) return RunJoinBackward(layer, dy);
  const DeviceTensor &x = activations_[spec.source + 1], &y = activations_[layer + 1];
  BackwardPass pass = {.part = part, .accumulate = accumulate, .input_gradient = spec.needs_input_gradient};
  if (pass.input_gradient && layers_[layer]->adds_input_gradient()) {
    pass.input_gradient_sum = GradientOf(spec.source);
  }
  const auto run = [&] { return layers_[layer]->Backward(x, y, dy, pass); };
  const CapturedPasses::Key key = {.x = x.buffer(),
                                   .y = y.buffer(),
                                   .dy = dy.buffer(),
                                   .input_gradient_sum = pass.input_gradient_sum.buffer(),
                                   .accumulate = accumulate};
  RUBATO_ASSIGN_OR_RETURN(DeviceTensor dx, Repeats(layer) ? backward_passes_[layer].Run(backend_, key, run) : run());
  if (!is_last) return absl::OkStatus();
  // Else the layer has added it.
  return pass.input_gradient_sum.empty() ? AddOutputGradient(spec.source, dx) : absl::OkStatus();
}

absl::Status Model::BackwardLayer(int layer, bool accumulate) {
  for (int part = 0; part < parts(layer); ++part) RUBATO_RETURN_IF_ERROR(BackwardPart(layer, part, accumulate));
  return absl::OkStatus();
}

absl::Status Model::CheckNext(int layer) const {
  if (next_backward_ >= 0 && layer == next_backward_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("BackwardLayer: layer ", layer, " was asked for and ",
                                                    next_backward_ < 0
                                                        ? std::string("the loss has not been computed")
                                                        : absl::StrCat("layer ", next_backward_, " is next")));
}

absl::Status Model::BackwardPart(int layer, int part, bool accumulate) {
  if (layer == deferred_.layer) return BackwardDeferred(part, accumulate);
  RUBATO_RETURN_IF_ERROR(CheckNext(layer));
  if (part != next_backward_part_) return WrongPart("BackwardPart", layer, part, next_backward_part_);
  next_backward_ = -1;
  RUBATO_RETURN_IF_ERROR(Annotate(RunBackward(layer, part, accumulate),
                                  absl::StrCat("backward, layer \"", spec_.layers[layer].name, "\"")));
  next_backward_part_ = part + 1 < parts(layer) ? part + 1 : 0;
  next_backward_ = next_backward_part_ > 0 ? layer : layer - 1;
  return absl::OkStatus();
}

bool Model::CanDefer(int layer) const {
  const bool has_joins = std::any_of(joins_.begin(), joins_.end(), [](const auto& join) { return join != nullptr; });
  return !has_joins && layer > 0 && parts(layer) > 1 && spec_.layers[layer].needs_input_gradient;
}

absl::Status Model::BackwardInput(int layer) {
  RUBATO_RETURN_IF_ERROR(CheckNext(layer));
  if (next_backward_part_ > 0) return WrongPart("BackwardInput", layer, 0, next_backward_part_);
  if (!CanDefer(layer) || deferred_.layer >= 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("BackwardInput: layer ", layer, " cannot be deferred",
                     deferred_.layer < 0 ? "" : absl::StrCat(" while layer ", deferred_.layer, " is")));
  }
  const LayerSpec& spec = spec_.layers[layer];
  const DeviceTensor dy = std::exchange(output_gradients_[layer], DeviceTensor());
  next_backward_ = -1;
  absl::StatusOr<DeviceTensor> dx = layers_[layer]->Backward(activations_[spec.source + 1], activations_[layer + 1], dy,
                                                             {.parameter_gradients = false});
  if (!dx.ok()) return Annotate(dx.status(), absl::StrCat("backward, layer \"", spec.name, "\""));
  deferred_ = {.layer = layer, .output_gradient = dy};
  next_backward_ = layer - 1;
  return AddOutputGradient(spec.source, *dx);
}

absl::Status Model::BackwardDeferred(int part, bool accumulate) {
  const int layer = deferred_.layer;
  if (part != deferred_.next_part) return WrongPart("BackwardPart", layer, part, deferred_.next_part);
  const LayerSpec& spec = spec_.layers[layer];
  const BackwardPass pass = {.part = part, .accumulate = accumulate, .input_gradient = false};
  RUBATO_RETURN_IF_ERROR(
      Annotate(layers_[layer]
                   ->Backward(activations_[spec.source + 1], activations_[layer + 1], deferred_.output_gradient, pass)
                   .status(),
               absl::StrCat("backward, layer \"", spec.name, "\"")));
  if (++deferred_.next_part == parts(layer)) deferred_ = {};
  return absl::OkStatus();
}

absl::StatusOr<const float*> Model::ToHost(DeviceTensor floats, const Shape& shape, HostCopy* copy) {
  if (floats.type() != ElementType::kFloat32) {
    if (copy->floats.empty()) {
      RUBATO_ASSIGN_OR_RETURN(copy->floats, backend_->Allocate(BatchShape(options_.max_batch, shape)));
    }
    const DeviceTensor converted = copy->floats.Rows(batch_->count());
    RUBATO_RETURN_IF_ERROR(backend_->Copy(floats, converted));
    floats = converted;
  }
  if (copy->host == nullptr) {
    const int64_t elements = options_.max_batch * NumElements(shape);
    RUBATO_ASSIGN_OR_RETURN(copy->host, backend_->AllocateHost(elements * static_cast<int64_t>(sizeof(float))));
  }
  RUBATO_RETURN_IF_ERROR(backend_->CopyToHost(floats, 0, floats.elements(), copy->host.get()));
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<Event> copied, backend_->Record());
  RUBATO_RETURN_IF_ERROR(copied->Wait());
  return static_cast<const float*>(copy->host.get());
}

absl::StatusOr<const float*> Model::AwaitInputGradient() {
  if (input_gradient_.empty() || next_backward_ >= 0) {
    return absl::FailedPreconditionError("AwaitInputGradient: layers are missing, or the model has no tables");
  }
  return ToHost(input_gradient_, spec_.input, &host_input_gradient_);
}

absl::StatusOr<const float*> Model::AwaitOutput() {
  if (next_forward_ != layers()) return absl::FailedPreconditionError("AwaitOutput: layers are missing");
  return ToHost(output(), spec_.output, &host_output_);
}

absl::Status Model::SumSquares() {
  for (size_t i = 0; i < gradients_.size(); ++i) {
    RUBATO_RETURN_IF_ERROR(backend_->SumOfSquares(gradients_[i], i > 0, squares_));
  }
  return absl::OkStatus();
}

absl::Status Model::ScaleGradients(float factor) {
  for (const DeviceTensor& gradient : gradients_) RUBATO_RETURN_IF_ERROR(backend_->Scale(factor, gradient));
  return absl::OkStatus();
}

absl::StatusOr<bool> Model::GradientsAreFinite() {
  // The squares of finite numbers are far from the end of float64's range, and so is any sum of them.
  RUBATO_RETURN_IF_ERROR(SumSquares());
  if (host_squares_ == nullptr) {
    RUBATO_ASSIGN_OR_RETURN(host_squares_, backend_->AllocateHost(squares_.elements() * sizeof(double)));
  }
  RUBATO_RETURN_IF_ERROR(backend_->CopyToHost(squares_, 0, squares_.elements(), host_squares_.get()));
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<Event> copied, backend_->Record());
  RUBATO_RETURN_IF_ERROR(copied->Wait());
  return std::isfinite(*static_cast<const double*>(host_squares_.get()));
}

absl::Status Model::ClipGradients(float max_norm) {
  RUBATO_RETURN_IF_ERROR(SumSquares());
  for (const DeviceTensor& gradient : gradients_) {
    RUBATO_RETURN_IF_ERROR(backend_->ScaleToNorm(max_norm, squares_, gradient));
  }
  return absl::OkStatus();
}

absl::StatusOr<LossResult> Model::EvaluateBatch() {
  for (int i = 0; i < layers(); ++i) RUBATO_RETURN_IF_ERROR(ForwardLayer(i, false, 0));
  RUBATO_RETURN_IF_ERROR(RunLoss(0, DeviceTensor()));
  return AwaitLoss();
}

}  // namespace rubato::worker
