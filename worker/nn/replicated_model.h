#ifndef RUBATO_WORKER_NN_REPLICATED_MODEL_H_
#define RUBATO_WORKER_NN_REPLICATED_MODEL_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/backend.h"
#include "worker/nn/model.h"

namespace rubato::worker {

// A model and the device that it is on.
struct Replica {
  Model* model = nullptr;
  Backend* backend = nullptr;
};

// One network on one or several devices, as a trainer uses it: each replica computes consecutive examples of a batch,
// and the first one's gradients become those of the whole batch, added up replica by replica, so that their bits do not
// depend on which device was faster. The calls are those of Model, in the same order. The caller fills the weights of
// every replica. One thread, that of the backends.
class ReplicatedModel {
 public:
  // At least one replica; all are of one ModelSpec and on backends of a kind, and outlive this. With several, the first
  // device gets memory for gradients of the others (ExchangeElements). ResourceExhausted: it has not that much.
  static absl::StatusOr<ReplicatedModel> Create(std::vector<Replica> replicas);

  // Elements of each of the two buffers that gradients of other replicas go through.
  static int64_t ExchangeElements(const ModelSpec& spec);

  absl::Span<const Replica> replicas() const { return replicas_; }
  const ModelSpec& spec() const { return lead().spec(); }
  // With the gradients of the whole batch.
  Model& lead() const { return *replicas_.front().model; }

  // Each replica has to have room for its part; with fewer examples than replicas the last ones stay idle.
  absl::Status StageInputs(const float* inputs, const int32_t* classes, int64_t examples);
  absl::Status StageInputs(const float* inputs, const float* targets, int64_t examples);
  absl::Status BeginStaged();
  absl::Status ForwardLayer(int layer, bool training, uint64_t dropout_stream);
  // In parts, as of Model; with several replicas a layer has one.
  int parts(int layer) const { return replicas_.size() == 1 ? lead().parts(layer) : 1; }
  absl::Status ForwardPart(int layer, int part, bool training, uint64_t dropout_stream);
  absl::Status EnqueueLoss(float gradient_scale);
  // The loss of all replicas, and waits for all devices that have a part in it.
  absl::StatusOr<LossResult> AwaitLoss();
  // `final`: no other batch will be added to the gradients, which become those of all replicas.
  absl::Status BackwardLayer(int layer, bool accumulate, bool final);
  // Final if the layer has several parts.
  absl::Status BackwardPart(int layer, int part, bool accumulate);
  // As of Model; with several replicas nothing is deferred.
  bool CanDefer(int layer) const { return replicas_.size() == 1 && lead().CanDefer(layer); }
  absl::Status BackwardInput(int layer) { return lead().BackwardInput(layer); }

 private:
  explicit ReplicatedModel(std::vector<Replica> replicas);

  template <typename Label>
  absl::Status StageParts(const float* inputs, const Label* labels, int64_t labels_per_example, int64_t examples);
  // A backward pass begins with the last layer.
  void BeginBackward(int layer, bool accumulate);
  // Adds a tensor's gradient of another replica to the first one's.
  absl::Status AddGradient(const Replica& from, int tensor);

  std::vector<Replica> replicas_;
  // How many replicas have examples of the batch; and of the one that is staged.
  size_t active_ = 0, staged_ = 0;
  // How many have gradients of batches that this one's are added to; and with this one's.
  size_t earlier_ = 0, contributing_ = 0;
  // Used alternately: while what is in one is added, the next arrives in the other.
  std::array<DeviceTensor, 2> exchange_;
  size_t next_exchange_ = 0;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_NN_REPLICATED_MODEL_H_
