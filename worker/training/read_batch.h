#ifndef RUBATO_WORKER_TRAINING_READ_BATCH_H_
#define RUBATO_WORKER_TRAINING_READ_BATCH_H_

#include <optional>

#include "absl/status/statusor.h"
#include "worker/data/prefetcher.h"
#include "worker/device/step_watchdog.h"

namespace rubato::worker {

// The next of the batches that the prefetcher was told to read. Waiting for the reader counts as time of the step, of
// which the watchdog, if it is not null, is told only if there is something to wait for. Errors of
// Prefetcher::Next; DeadlineExceeded after ten minutes.
absl::StatusOr<Batch> ReadBatch(Prefetcher* prefetcher, StepWatchdog* watchdog);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_READ_BATCH_H_
