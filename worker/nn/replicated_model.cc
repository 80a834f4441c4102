#include "worker/nn/replicated_model.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace rubato::worker {

int64_t ReplicatedModel::ExchangeElements(const ModelSpec& spec) {
  int64_t largest = 0;
  for (const TensorSpec& tensor : spec.tensors) largest = std::max(largest, NumElements(tensor.shape));
  return largest;
}

ReplicatedModel::ReplicatedModel(std::vector<Replica> replicas) : replicas_(std::move(replicas)) {}

absl::StatusOr<ReplicatedModel> ReplicatedModel::Create(std::vector<Replica> replicas) {
  ReplicatedModel model(std::move(replicas));
  if (model.replicas_.size() == 1) return model;
  for (DeviceTensor& buffer : model.exchange_) {
    RUBATO_ASSIGN_OR_RETURN(buffer, model.replicas_[0].backend->Allocate({ExchangeElements(model.spec())}));
  }
  return model;
}

template <typename Label>
absl::Status ReplicatedModel::StageParts(const float* inputs, const Label* labels, int64_t labels_per_example,
                                         int64_t examples) {
  const int64_t parts = std::clamp<int64_t>(examples, 1, static_cast<int64_t>(replicas_.size()));
  const int64_t input_elements = NumElements(spec().input);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = examples * part / parts, end = examples * (part + 1) / parts;
    RUBATO_RETURN_IF_ERROR(replicas_[part].model->StageInputs(inputs + begin * input_elements,
                                                              labels + begin * labels_per_example, end - begin));
  }
  staged_ = static_cast<size_t>(parts);
  return absl::OkStatus();
}

absl::Status ReplicatedModel::StageInputs(const float* inputs, const int32_t* classes, int64_t examples) {
  return StageParts(inputs, classes, spec().labels_per_example(), examples);
}

absl::Status ReplicatedModel::StageInputs(const float* inputs, const float* targets, int64_t examples) {
  return StageParts(inputs, targets, NumElements(spec().output), examples);
}

absl::Status ReplicatedModel::BeginStaged() {
  for (size_t i = 0; i < staged_; ++i) RUBATO_RETURN_IF_ERROR(replicas_[i].model->BeginStaged());
  active_ = staged_;
  return absl::OkStatus();
}

absl::Status ReplicatedModel::ForwardLayer(int layer, bool training, uint64_t dropout_stream) {
  for (size_t i = 0; i < active_; ++i) {
    RUBATO_RETURN_IF_ERROR(replicas_[i].model->ForwardLayer(layer, training, dropout_stream));
  }
  return absl::OkStatus();
}

absl::Status ReplicatedModel::ForwardPart(int layer, int part, bool training, uint64_t dropout_stream) {
  return parts(layer) == 1 ? ForwardLayer(layer, training, dropout_stream)
                           : lead().ForwardPart(layer, part, training, dropout_stream);
}

absl::Status ReplicatedModel::EnqueueLoss(float gradient_scale) {
  for (size_t i = 0; i < active_; ++i) RUBATO_RETURN_IF_ERROR(replicas_[i].model->EnqueueLoss(gradient_scale));
  return absl::OkStatus();
}

absl::StatusOr<LossResult> ReplicatedModel::AwaitLoss() {
  LossResult sum;
  for (size_t i = 0; i < active_; ++i) {
    RUBATO_ASSIGN_OR_RETURN(const LossResult result, replicas_[i].model->AwaitLoss());
    sum.loss_sum += result.loss_sum;
    sum.correct += result.correct;
  }
  // What an idle one was given, its weights, nothing else waits for.
  for (size_t i = active_; i < replicas_.size(); ++i) RUBATO_RETURN_IF_ERROR(replicas_[i].backend->Synchronize());
  return sum;
}

absl::Status ReplicatedModel::AddGradient(const Replica& from, int tensor) {
  const Replica& lead = replicas_.front();
  const DeviceTensor& theirs = from.model->gradient(tensor);
  const DeviceTensor arrived = exchange_[next_exchange_].Rows(theirs.elements()).Reshaped(theirs.shape());
  next_exchange_ = 1 - next_exchange_;
  RUBATO_RETURN_IF_ERROR(lead.backend->CopyFromPeer(from.backend, theirs, arrived));
  return lead.backend->Axpy(1, arrived, lead.model->gradient(tensor));
}

void ReplicatedModel::BeginBackward(int layer, bool accumulate) {
  if (layer != static_cast<int>(spec().layers.size()) - 1) return;
  earlier_ = accumulate ? contributing_ : 0;
  contributing_ = std::max(active_, earlier_);
}

absl::Status ReplicatedModel::BackwardLayer(int layer, bool accumulate, bool final) {
  BeginBackward(layer, accumulate);
  for (size_t i = 0; i < active_; ++i) {
    // A replica that was idle before has an old step's gradients.
    RUBATO_RETURN_IF_ERROR(replicas_[i].model->BackwardLayer(layer, i < earlier_));
  }
  if (!final) return absl::OkStatus();
  for (int tensor : spec().layers[layer].tensors) {
    for (size_t i = 1; i < contributing_; ++i) RUBATO_RETURN_IF_ERROR(AddGradient(replicas_[i], tensor));
  }
  return absl::OkStatus();
}

absl::Status ReplicatedModel::BackwardPart(int layer, int part, bool accumulate) {
  if (parts(layer) == 1) return BackwardLayer(layer, accumulate, /*final=*/true);
  if (part == 0) BeginBackward(layer, accumulate);
  return lead().BackwardPart(layer, part, earlier_ > 0);
}

}  // namespace rubato::worker
