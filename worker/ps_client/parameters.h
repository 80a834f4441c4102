#ifndef RUBATO_WORKER_PS_CLIENT_PARAMETERS_H_
#define RUBATO_WORKER_PS_CLIENT_PARAMETERS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/parameter_server.pb.h"

namespace rubato::worker {

// What a trainer needs of the parameter servers. Used by one trainer thread.
//
//   Step step;
//   // Forward, layer by layer: false means that the step was moved; call Restart() and begin the forward again.
//   if (!*parameters->AwaitTensor(tensor)) ...
//   if (!*parameters->BeginStep(&step)) ...
//   // Backward, layer by layer.
//   parameters->PushTensor(tensor, {.examples = examples, .epoch = epoch});
class Parameters {
 public:
  struct Step {
    uint64_t generation = 0;
    int64_t step = 0;
    // The plan that the step belongs to, without later amendments.
    v1::Plan plan;
  };

  // What a gradient is of.
  struct Pushed {
    // 0: the gradient is empty.
    uint64_t examples = 0;
    // The worker has none of this tensor, and may have some of others: `examples` do not count in its mean.
    bool absent = false;
    // Position of the batch.
    double epoch = 0;
    // DYNAMIC dispatch: the batch, also if nothing is contributed for it. Without a shard: there is none.
    v1::ShardSlice slice = {};
    // A client's job: with what the tensor is updated, and others of its group that travel with it. Null: as the config
    // says.
    std::shared_ptr<const v1::GroupHyperparameters> hyperparameters = nullptr;
  };

  virtual ~Parameters() = default;

  // The step to begin next, unless it is moved.
  virtual Step next_step() = 0;

  // Waits until the tensor's weights for the next step are in place; false when the step was moved instead. Errors:
  // DeadlineExceeded with whom it waited for; Unavailable when a server cannot be reached; Aborted when the task is no
  // member any more; FailedPrecondition when a server refused; Cancelled or another status when it was cancelled.
  virtual absl::StatusOr<bool> AwaitTensor(int tensor) = 0;
  // The same of at least the tensor's first `elements`.
  virtual absl::StatusOr<bool> AwaitElements(int tensor, int64_t /*elements*/) { return AwaitTensor(tensor); }

  // After a move: asks again for what is missing. The trainer must not use weights from before.
  virtual void Restart() = 0;

  // All tensors have been awaited: the step begins. Errors as AwaitTensor; false when the step was moved.
  virtual absl::StatusOr<bool> BeginStep(Step* step) = 0;

  // The tensor's gradient of the current step is final. The slice is the same for all tensors of a step.
  virtual void PushTensor(int tensor, const Pushed& pushed) = 0;
  // Its first `elements` are final and may be pushed already; PushTensor follows, with the same `pushed`. The trainer
  // does not use these weights any more in this step.
  virtual void PushElements(int /*tensor*/, int64_t /*elements*/, const Pushed& /*pushed*/) {}

  // Rows of tables, for models that have some. Keys of a call come in the order of their hashes (common/table_keys.h),
  // each once.
  //
  // The next step needs the rows of these keys. Before the step begins, as early as they are known: asked for before
  // the current step's PushRows, they come with the answer to that. A later call takes the place of an earlier one.
  virtual void AskRows(int /*table*/, const std::vector<uint64_t>& /*keys*/) {}
  // Waits until the rows that were asked for last are there, of the step that begins next; false when it was moved
  // instead. Errors as AwaitTensor.
  virtual absl::StatusOr<bool> AwaitRows(int /*table*/) {
    return absl::UnimplementedError("rows of tables are not to be had here");
  }
  // After AwaitRows: a row for each of the keys, in their order. Until BeginStep or AskRows.
  virtual const float* rows(int /*table*/) { return nullptr; }
  // The gradients of rows in the current step, `dimension` floats for each key; none without examples. In every step,
  // once for each table.
  virtual void PushRows(int /*table*/, const std::vector<uint64_t>& /*keys*/, const std::vector<float>& /*gradients*/,
                        const Pushed& /*pushed*/) {}

  // Waits until every push of the current step is acknowledged. Errors as AwaitTensor.
  virtual absl::Status AwaitAcknowledgements() = 0;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_PARAMETERS_H_
