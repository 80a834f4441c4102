#ifndef RUBATO_CLIENT_SIDECAR_CLIENT_PROGRESS_H_
#define RUBATO_CLIENT_SIDECAR_CLIENT_PROGRESS_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "client/link/frame.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/trace/trace_recorder.h"
#include "proto/coordinator.pb.h"

namespace rubato::client {

// What a worker tells of a client's steps in heartbeats and traces. Where the time went follows from when the client
// calls: it computes from the begin of a step to its pushes, and after the last of these it is at its data. Describe
// from any thread, all else on the thread that steps.
class ClientProgress {
 public:
  // `trace` may be null.
  ClientProgress(const Clock* clock, TraceRecorder* trace);

  // The client asks for the next step: all is said of the one before.
  void OnBegin();
  // It has it.
  void OnBegun(int64_t step, uint64_t generation);
  // A gradient of so many examples is handed over, from `begin` until now.
  void OnPushed(absl::Time begin, uint64_t examples);
  // The step's last one was.
  void OnStepPushed();
  void OnReport(const ReportBody& report);
  void OnEpoch(double epoch);
  // What the first group's tensors are updated with.
  void SetLearningRate(double rate);

  int64_t steps_total();
  void Describe(v1::WorkerProgress* progress);

 private:
  // The examples of the step that is over: those that were reported, otherwise those that were pushed.
  void CountExamples() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Span(const TraceKind& kind, absl::Time begin, absl::Time end);

  const Clock* const clock_;
  TraceRecorder* const trace_;
  const TraceTrack track_;
  int64_t step_ = 0;
  // When the client did what came last, and when the step at work began for it.
  absl::Time mark_;
  absl::Time step_begin_;
  absl::Time compute_begin_;
  // Of the step at work, for weights.
  absl::Duration step_wait_;
  uint64_t pushed_examples_ = 0;
  bool reported_ = false;
  Mutex mu_;
  v1::WorkerProgress progress_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_CLIENT_PROGRESS_H_
