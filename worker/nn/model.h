#ifndef RUBATO_WORKER_NN_MODEL_H_
#define RUBATO_WORKER_NN_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "kernels/backend.h"
#include "worker/nn/batch_memory.h"
#include "worker/nn/captured_passes.h"
#include "worker/nn/layers/join.h"
#include "worker/nn/layers/layer.h"

namespace rubato::worker {

// Of the examples of one batch.
struct LossResult {
  double loss_sum = 0;
  // Examples whose largest output was their class; of an example with several labels, the share of these. With one
  // output, those whose logit was over 0 if their class is 1, and not otherwise. MEAN_SQUARED_ERROR: 0.
  double correct = 0;
};

// A network on one device: weights, gradients, activations, and the passes over them, layer by layer, so that the
// caller can wait for one layer's weights at a time and send one layer's gradients while the next is computed:
//
//   RUBATO_RETURN_IF_ERROR(model->SetInputs(images, classes, 64));
//   for (int i = 0; i < model->layers(); ++i) { ...; RUBATO_RETURN_IF_ERROR(model->ForwardLayer(i, true, stream)); }
//   RUBATO_ASSIGN_OR_RETURN(LossResult loss, model->ComputeLoss(1.0f / 64));
//   for (int i = model->layers(); i-- > 0;) { RUBATO_RETURN_IF_ERROR(model->BackwardLayer(i, false)); ...; }
//
// Weights are zero until the caller fills them. Work is enqueued on the backend and follows its rules: gradients may be
// read once an event recorded after their BackwardLayer is done. A failed call leaves the batch unfinished; SetInputs
// begins another. Used by one thread at a time, the backend's.
class Model {
 public:
  struct Options {
    // Examples in the largest batch (of micro-batches: in one of these).
    int64_t max_batch = 0;
    // Of the dropout masks.
    uint64_t seed = 0;
  };

  // `backend` outlives the model. InvalidArgument: max_batch is under 1. ResourceExhausted: the device has not enough
  // memory.
  static absl::StatusOr<std::unique_ptr<Model>> Create(const ModelSpec& spec, Backend* backend, const Options& options);

  const ModelSpec& spec() const { return spec_; }
  int layers() const { return static_cast<int>(layers_.size()); }
  // The most that any layer's operations take for themselves at a time.
  int64_t WorkspaceBytes(const WorkspaceRules& rules) const;

  // float32, with the shape of ModelSpec::tensors[tensor].
  const DeviceTensor& weight(int tensor) const { return weights_[tensor]; }
  const DeviceTensor& gradient(int tensor) const { return gradients_[tensor]; }

  // Begins a batch: [examples, input...] and [labels_per_example] classes or [output...] per example. The host memory
  // is free again on return. InvalidArgument: the labels are not of the loss's kind, a class is out of range, an input
  // should be a token and is none, or examples is not in 1 to max_batch; nothing has changed then.
  absl::Status SetInputs(const float* inputs, const int32_t* classes, int64_t examples);
  absl::Status SetInputs(const float* inputs, const float* targets, int64_t examples);
  // The same in two calls: the first has the batch copied to the device beside the one that is computed, which goes on,
  // and waits for neither; the second begins what was staged last. FailedPrecondition: nothing is staged.
  absl::Status StageInputs(const float* inputs, const int32_t* classes, int64_t examples);
  absl::Status StageInputs(const float* inputs, const float* targets, int64_t examples);
  absl::Status BeginStaged();

  // Passes over a layer may be made in parts, each a call, for callers that have not all of its weights yet, or can use
  // a part of its gradients: 1 for most layers, and on devices with memory of their own.
  int parts(int layer) const;
  // A part needs of the layer's first tensor so many elements from its beginning, and of the others all; its backward
  // pass has written as many of the gradient, and these weights are not read any more. REQUIRES: the layer has parts.
  int64_t PartEnd(int layer, int part) const { return layers_[layer]->PartEnd(part); }

  // Layers in order from 0, and each one's parts. `dropout_stream` names the dropout masks: another one in each step of
  // each worker, and the same for all layers of it. FailedPrecondition: another layer or part is next.
  absl::Status ForwardLayer(int layer, bool training, uint64_t dropout_stream);
  absl::Status ForwardPart(int layer, int part, bool training, uint64_t dropout_stream);
  // After the last layer; waits for the device. The backward pass gives gradients of gradient_scale times loss_sum: 1 /
  // examples for those of the mean. FailedPrecondition: layers are missing.
  absl::StatusOr<LossResult> ComputeLoss(float gradient_scale);
  // The same in two calls, of which the second, for the loss of the first, waits: for what was enqueued before it, and
  // not for the backward pass that may have begun. FailedPrecondition: there is no first.
  absl::Status EnqueueLoss(float gradient_scale);
  absl::StatusOr<LossResult> AwaitLoss();
  // Layers in reverse order. Writes the gradients of the layer's tensors, or adds to them, for micro-batches.
  // FailedPrecondition: another layer is next, or no loss has been enqueued.
  absl::Status BackwardLayer(int layer, bool accumulate);
  absl::Status BackwardPart(int layer, int part, bool accumulate);
  // Whether BackwardInput may take BackwardLayer's place: for layers with several parts of models without joins, where
  // nobody writes over the gradient of a layer's output.
  bool CanDefer(int layer) const;
  // Leaves the gradients of the layer's tensors for BackwardPart to give later: after any layer under this one, before
  // the next BackwardInput. FailedPrecondition: another layer is next, cannot be deferred, or is.
  absl::Status BackwardInput(int layer);

  // After the last BackwardLayer, of a model with tables: the gradient of its input, [examples, input...], on the host;
  // waits for it. Valid until the next call. FailedPrecondition: layers are missing, or there are no tables.
  absl::StatusOr<const float*> AwaitInputGradient();
  // After the last BackwardLayer, like the next two: multiplies all gradients with `factor`, which is not 0.
  absl::Status ScaleGradients(float factor);
  // Whether all elements of all gradients are finite. Computed on the device and waited for.
  absl::StatusOr<bool> GradientsAreFinite();
  // Scales all gradients so that the norm of all of them together is at most max_norm >
  // 0. A norm that is not finite leaves them alone.
  absl::Status ClipGradients(float max_norm);

  // Every layer and the loss of the batch that SetInputs began, without dropout and gradients. FailedPrecondition: no
  // batch has been begun, or a layer has run already.
  absl::StatusOr<LossResult> EvaluateBatch();

  // [examples, output...] of the current batch, after the last layer. An activation.
  const DeviceTensor& output() const { return activations_.back(); }
  // The same as float32 on the host; waits for it. Valid until the next call. FailedPrecondition: layers are missing.
  absl::StatusOr<const float*> AwaitOutput();

 private:
  Model(const ModelSpec& spec, Backend* backend, const Options& options);

  // Of an activation, as float32. Allocated when it is first needed.
  struct HostCopy {
    DeviceTensor floats;  // If activations are not.
    std::shared_ptr<void> host;
  };
  // Copies an activation of the current batch, of `shape` without the batch, and waits for it.
  absl::StatusOr<const float*> ToHost(DeviceTensor floats, const Shape& shape, HostCopy* copy);
  absl::Status Allocate();
  // Of the tensors that belong to a layer.
  LayerParameters Parameters(const LayerSpec& layer) const;
  absl::StatusOr<std::unique_ptr<Join>> NewJoin(const LayerSpec& layer, const LayerContext& context) const;
  // Whether a residual's sum at this place hands its gradient on to both of its inputs.
  bool SharesGradient(const LayerSpec& sum, int position) const;
  absl::Status CheckBatch(bool has_classes, int64_t examples) const;
  absl::Status AllocateBatch();
  // Of all gradients, into squares_.
  absl::Status SumSquares();
  // Inputs as tokens, into tokens_.
  absl::Status ReadTokens(const float* inputs, int64_t count);
  absl::Status Stage(const float* inputs, const void* labels, int64_t examples);
  // Whether a layer's passes over this batch come again: those over full batches do.
  bool Repeats(int layer) const;
  // The outputs that a join takes.
  std::vector<DeviceTensor> JoinInputs(int layer) const;
  absl::StatusOr<DeviceTensor> RunForward(int layer, const ForwardPass& pass);
  absl::Status RunJoinBackward(int layer, const DeviceTensor& dy);
  absl::Status RunBackward(int layer, int part, bool accumulate);
  // Whether the backward pass has come to this layer.
  absl::Status CheckNext(int layer) const;
  absl::Status BackwardDeferred(int part, bool accumulate);
  // Of a layer's output, or of the model's input, as far as the layers after it have added theirs.
  DeviceTensor& GradientOf(int layer) { return layer == kModelInput ? input_gradient_ : output_gradients_[layer]; }
  // `gradient` is one of the terms of that of a layer's output.
  absl::Status AddOutputGradient(int layer, const DeviceTensor& gradient);
  // An example's loss is the mean of this many, one for each of its labels.
  int64_t LossTerms() const;
  // output(), if it is not float32 as a float32 copy.
  absl::StatusOr<DeviceTensor> FloatOutput();
  // `gradient` may be empty.
  absl::Status RunLoss(float gradient_scale, const DeviceTensor& gradient);

  const ModelSpec spec_;
  Backend* const backend_;
  const Options options_;
  std::vector<DeviceTensor> weights_, gradients_;  // By ModelSpec::tensors.
  // Null if there is a join instead.
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<std::unique_ptr<Join>> joins_;
  // By layer.
  std::vector<CapturedPasses> forward_passes_, backward_passes_;

  // Memory for the largest batch. The loss is float32 on all sides.
  DeviceTensor output_gradient_, loss_sums_, squares_;
  // If activations are not: the model's input and the gradient of its output as activations, the output as float32.
  DeviceTensor activation_input_, activation_gradient_, float_output_;
  std::optional<BatchMemory> batch_;
  std::vector<int32_t> tokens_;
  // loss_sums_ and squares_ on the host. Allocated when they are first needed: a backend that only plans has no such
  // memory.
  std::shared_ptr<void> host_sums_, host_squares_;
  HostCopy host_input_gradient_, host_output_;
  // The last loss is in host_sums_.
  std::unique_ptr<Event> loss_copied_;

  // The current batch. activations_[0] is the model's input, and activations_[i + 1] layer i's output.
  std::vector<DeviceTensor> activations_;
  // Of each layer's output, as far as the layers after it have added theirs; empty if none has, or when it is used.
  std::vector<DeviceTensor> output_gradients_;
  // The same of the model's input, if it has tables.
  DeviceTensor input_gradient_;
  int next_forward_ = 0;
  int next_backward_ = -1;  // -1: none.
  // Of that layer.
  int next_forward_part_ = 0, next_backward_part_ = 0;
  // Of the layer of the last BackwardInput, until its parts are done.
  struct Deferred {
    int layer = -1;  // -1: none.
    int next_part = 0;
    DeviceTensor output_gradient;
  } deferred_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_NN_MODEL_H_
