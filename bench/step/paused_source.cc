#include "bench/step/paused_source.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/bench_timing.h"

namespace rubato::bench {
namespace {

constexpr int kBatches = 16;
// While others take their turns.
constexpr absl::Duration kPauseMax = absl::Hours(1);

}  // namespace

PausedSource::PausedSource(int64_t batch, int64_t features, int classes, uint64_t seed, const Clock* clock)
    : clock_(clock) {
  const std::vector<float> noise = NormalValues(batch * features, seed);
  for (int b = 0; b < kBatches; ++b) {
    worker::Batch& entry = batches_.emplace_back();
    entry.examples = batch;
    entry.inputs = noise;
    std::rotate(entry.inputs.begin(), entry.inputs.begin() + b * features, entry.inputs.end());
    for (int64_t i = 0; i < batch; ++i) entry.classes.push_back(static_cast<int32_t>((i * 7 + b) % classes));
  }
}

absl::StatusOr<worker::BatchSource::Next> PausedSource::Get(const worker::Parameters::Step&) {
  const absl::Time deadline = clock_->Now() + kPauseMax;
  MutexLock lock(mu_);
  while (paused_ && !ended_) {
    const absl::Duration left = deadline - clock_->Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("waited ", absl::FormatDuration(kPauseMax),
                                                      " for the benchmark's next round, after ", steps_, " steps"));
    }
    changed_.WaitFor(mu_, left);
  }
  Next next;
  if (ended_) return next;
  next.kind = Kind::kBatch;
  next.batch = &batches_[steps_ % kBatches];
  return next;
}

void PausedSource::Begun() {
  MutexLock lock(mu_);
  ++steps_;
}

void PausedSource::SetPaused(bool paused) {
  MutexLock lock(mu_);
  paused_ = paused;
  changed_.NotifyAll();
}

void PausedSource::End() {
  MutexLock lock(mu_);
  ended_ = true;
  changed_.NotifyAll();
}

int64_t PausedSource::steps() {
  MutexLock lock(mu_);
  return steps_;
}

}  // namespace rubato::bench
