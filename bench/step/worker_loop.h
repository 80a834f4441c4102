#ifndef RUBATO_BENCH_STEP_WORKER_LOOP_H_
#define RUBATO_BENCH_STEP_WORKER_LOOP_H_

#include <memory>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/step/loopback_copies.h"
#include "bench/step/paused_source.h"
#include "bench/step/step_job.h"
#include "common/clock.h"
#include "common/log.h"
#include "kernels/backend.h"
#include "worker/nn/replicated_model.h"
#include "worker/ps_client/model_memory.h"
#include "worker/ps_client/ps_client.h"
#include "worker/training/trainer.h"

namespace rubato::bench {

// A worker: the real trainer, model and client on batches that lie ready in memory, paused between runs. Not
// thread-safe.
class WorkerLoop {
 public:
  // What a run did.
  struct Result {
    int64_t examples = 0;
    absl::Duration elapsed;
    absl::Duration pull_wait;
    int64_t steps = 0;
  };

  // `server`: absent for a worker that applies the optimizer itself.
  static absl::StatusOr<std::unique_ptr<WorkerLoop>> Start(const StepSetup& setup, uint32_t index,
                                                           const v1::ServerInfo* server);
  ~WorkerLoop();

  // Trains for `duration`.
  absl::StatusOr<Result> Run(absl::Duration duration);

 private:
  explicit WorkerLoop(StepJob job) : job_(std::move(job)) {}

  absl::Status SetUp(const StepSetup& setup, uint32_t index, bool has_server);
  absl::Status Connect(uint32_t index);

  const StepJob job_;
  RealClock clock_;
  Logger log_{"worker", &clock_};
  std::shared_ptr<SharedArena> arena_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<worker::Model> model_;
  std::optional<worker::ReplicatedModel> replicated_;
  std::unique_ptr<worker::ModelMemory> memory_;
  std::unique_ptr<LoopbackCopies> copies_;
  std::unique_ptr<worker::Parameters> parameters_;
  // Null without a server; `parameters_` then may stand before it.
  std::unique_ptr<worker::PsClient> client_;
  std::unique_ptr<PausedSource> source_;
  std::unique_ptr<worker::Trainer> trainer_;
  std::thread thread_;
};

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_STEP_WORKER_LOOP_H_
