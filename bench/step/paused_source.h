#ifndef RUBATO_BENCH_STEP_PAUSED_SOURCE_H_
#define RUBATO_BENCH_STEP_PAUSED_SOURCE_H_

#include <cstdint>
#include <vector>

#include "common/clock.h"
#include "common/mutex.h"
#include "worker/training/batch_source.h"

namespace rubato::bench {

// Batches of noise that lie ready in memory, given out round-robin while it is not paused, which it is at first. Get
// and Begun are the trainer's; the rest is for another thread.
class PausedSource : public worker::BatchSource {
 public:
  // `clock` outlives it.
  PausedSource(int64_t batch, int64_t features, int classes, uint64_t seed, const Clock* clock);

  // DeadlineExceeded after an hour of pause.
  absl::StatusOr<Next> Get(const worker::Parameters::Step& step) override;
  void Begun() override;
  void Stopped() override {}

  void SetPaused(bool paused);
  // The trainer's loop ends.
  void End();
  // Steps that have begun.
  int64_t steps();

 private:
  const Clock* const clock_;
  std::vector<worker::Batch> batches_;
  Mutex mu_;
  CondVar changed_;
  bool paused_ ABSL_GUARDED_BY(mu_) = true;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  int64_t steps_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_STEP_PAUSED_SOURCE_H_
