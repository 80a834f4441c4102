#include "worker/training/trainer_progress.h"

#include "absl/strings/str_cat.h"
#include "common/metrics/step_count.h"

namespace rubato::worker {
namespace {

constexpr TraceKind kStep = {"step", "step", {"step"}};

void AddSeconds(TrainerProgress::Phase phase, double seconds, v1::WorkerProgress* progress) {
  switch (phase) {
    case TrainerProgress::Phase::kData:
      return progress->set_data_seconds_total(progress->data_seconds_total() + seconds);
    case TrainerProgress::Phase::kCompute:
      return progress->set_compute_seconds_total(progress->compute_seconds_total() + seconds);
    case TrainerProgress::Phase::kPush:
      return progress->set_push_seconds_total(progress->push_seconds_total() + seconds);
    case TrainerProgress::Phase::kPullWait:
      return progress->set_pull_wait_seconds_total(progress->pull_wait_seconds_total() + seconds);
  }
}

}  // namespace

TrainerProgress::TrainerProgress(const Clock* clock, TraceRecorder* trace, StepWatchdog* watchdog)
    : clock_(clock),
      trace_(trace),
      track_(trace == nullptr ? TraceTrack{} : trace->Track("trainer")),
      watchdog_(watchdog) {}

void TrainerProgress::Add(const Timed& timed) {
  const absl::Time end = clock_->Now();
  if (trace_ != nullptr && trace_->enabled()) {
    const TraceText subject = timed.subject_.empty() ? TraceText{} : trace_->Text(timed.subject_);
    trace_->Span(timed.activity_.kind, {.track = track_, .subject = subject, .begin = timed.begin_, .end = end},
                 {step_});
  }
  const absl::Duration took = end - timed.begin_;
  if (timed.activity_.phase == Phase::kPullWait) step_wait_ += took;
  MutexLock lock(mu_);
  AddSeconds(timed.activity_.phase, absl::ToDoubleSeconds(took), &progress_);
}

void TrainerProgress::BeginStep(int64_t step) {
  step_ = step;
  step_begin_ = clock_->Now();
  step_wait_ = absl::ZeroDuration();
  step_examples_ = 0;
  if (watchdog_ != nullptr) watchdog_->Begin(absl::StrCat("step ", step));
}

void TrainerProgress::EnterStep(int64_t step, uint64_t generation) {
  MutexLock lock(mu_);
  progress_.set_step(step);
  progress_.set_generation(generation);
}

void TrainerProgress::EndStep() {
  const absl::Time end = clock_->Now();
  if (trace_ != nullptr) {
    trace_->Span(kStep, {.track = track_, .begin = step_begin_, .end = end}, {step_});
  }
  MutexLock lock(mu_);
  CountStep(absl::ToDoubleSeconds(end - step_begin_), absl::ToDoubleSeconds(step_wait_), step_examples_, &progress_);
}

void TrainerProgress::AddExamples(int64_t examples, double loss, double correct, double epoch) {
  step_examples_ += examples;
  MutexLock lock(mu_);
  progress_.set_examples_total(progress_.examples_total() + examples);
  progress_.set_loss_total(progress_.loss_total() + loss);
  progress_.set_correct_total(progress_.correct_total() + correct);
  progress_.set_epoch(epoch);
}

void TrainerProgress::AddNonFinite() {
  MutexLock lock(mu_);
  progress_.set_non_finite_total(progress_.non_finite_total() + 1);
}

void TrainerProgress::SetLossScale(double scale, int64_t overflows) {
  MutexLock lock(mu_);
  progress_.set_loss_scale(scale);
  progress_.set_overflow_total(overflows);
}

int64_t TrainerProgress::steps_total() {
  MutexLock lock(mu_);
  return progress_.steps_total();
}

void TrainerProgress::Describe(v1::WorkerProgress* progress) {
  MutexLock lock(mu_);
  *progress = progress_;
}

}  // namespace rubato::worker
