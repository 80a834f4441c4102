#ifndef RUBATO_WORKER_TRAINER_H_
#define RUBATO_WORKER_TRAINER_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "worker/batch_source.h"
#include "worker/nn/model.h"
#include "worker/parameters.h"

namespace rubato::worker {

// The step loop: waits for weights layer by layer while it computes forward, pushes gradients layer by layer while it
// computes backward. Run() on one thread; Describe() from any.
class Trainer {
 public:
  struct Options {
    const v1::JobConfig* config = nullptr;
    const ModelSpec* spec = nullptr;
    Model* model = nullptr;
    Parameters* parameters = nullptr;
    BatchSource* source = nullptr;
    uint32_t worker = 0;
    // Every computation takes this many times its processor time: 1 for full speed. The rest is slept.
    double slow_factor = 1;
    Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  explicit Trainer(const Options& options) : options_(options) {}

  // Until the source is done. Errors of the parameters, the source and the model; OutOfRange "STOP_JOB: ..." for a loss
  // that is not finite where the config says STOP_JOB.
  absl::Status Run();

  // What this trainer knows for a heartbeat.
  void Describe(v1::WorkerProgress* progress);

 private:
  enum class Outcome { kStepDone, kMoved };
  // Adds the time of one phase to its total.
  class Timed;

  absl::StatusOr<Outcome> EmptyStep();
  absl::StatusOr<Outcome> ComputeStep(const BatchSource::Next& next);
  // Forward of one part of the batch. The first part waits for weights; false when the step was moved.
  absl::StatusOr<bool> Forward(const Batch& batch, int64_t begin, int64_t count, int part, int64_t step);
  absl::Status Backward(const BatchSource::Next& next, bool accumulate, bool push);
  absl::StatusOr<bool> AwaitLayer(const LayerSpec& layer);
  absl::StatusOr<bool> Begin(Parameters::Step* step);
  void PushLayer(const LayerSpec& layer, uint64_t examples, double epoch);
  void PushAllEmpty(double epoch);
  absl::Status OnNonFiniteLoss(double loss, int64_t step, double epoch);

  const Options options_;
  Mutex mu_;
  v1::WorkerProgress progress_ ABSL_GUARDED_BY(mu_);
  absl::Duration step_time_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINER_H_
