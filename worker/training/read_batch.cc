#include "worker/training/read_batch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato::worker {
namespace {

constexpr absl::Duration kReadTimeout = absl::Minutes(10);

}  // namespace

absl::StatusOr<Batch> ReadBatch(Prefetcher* prefetcher, StepWatchdog* watchdog) {
  RUBATO_ASSIGN_OR_RETURN(std::optional<Batch> batch, prefetcher->Next(absl::ZeroDuration()));
  if (!batch.has_value()) {
    StepWatchdog::Watch watch(watchdog, "read a batch", "", StepWatchdog::On::kReader);
    RUBATO_ASSIGN_OR_RETURN(batch, prefetcher->Next(kReadTimeout));
  }
  if (batch.has_value()) return *std::move(batch);
  return absl::DeadlineExceededError(
      absl::StrCat("reading a batch took longer than ", absl::FormatDuration(kReadTimeout)));
}

}  // namespace rubato::worker
