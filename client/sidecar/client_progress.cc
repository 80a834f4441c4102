#include "client/sidecar/client_progress.h"

#include <algorithm>
#include <utility>

#include "common/metrics/step_count.h"

namespace rubato::client {
namespace {

constexpr TraceKind kStep = {"step", "step", {"step"}};
constexpr TraceKind kAwait = {"pull", "await", {"step"}};
constexpr TraceKind kCompute = {"compute", "compute", {"step"}};

}  // namespace

ClientProgress::ClientProgress(const Clock* clock, TraceRecorder* trace)
    : clock_(clock),
      trace_(trace),
      track_(trace == nullptr ? TraceTrack{} : trace->Track("trainer")),
      mark_(clock->Now()),
      step_begin_(mark_) {}

void ClientProgress::Span(const TraceKind& kind, absl::Time begin, absl::Time end) {
  if (trace_ != nullptr && trace_->enabled())
    trace_->Span(kind, {.track = track_, .begin = begin, .end = end}, {step_});
}

void ClientProgress::CountExamples() {
  if (!std::exchange(reported_, false)) {
    progress_.set_examples_total(progress_.examples_total() + static_cast<int64_t>(pushed_examples_));
  }
  pushed_examples_ = 0;
}

void ClientProgress::OnBegin() {
  const absl::Time now = clock_->Now();
  MutexLock lock(mu_);
  CountExamples();
  progress_.set_data_seconds_total(progress_.data_seconds_total() + absl::ToDoubleSeconds(now - mark_));
  mark_ = now;
}

void ClientProgress::OnBegun(int64_t step, uint64_t generation) {
  const absl::Time now = clock_->Now();
  step_ = step;
  Span(kAwait, mark_, now);
  MutexLock lock(mu_);
  step_wait_ = now - mark_;
  progress_.set_pull_wait_seconds_total(progress_.pull_wait_seconds_total() + absl::ToDoubleSeconds(step_wait_));
  progress_.set_step(step);
  progress_.set_generation(generation);
  mark_ = compute_begin_ = now;
}

void ClientProgress::OnPushed(absl::Time begin, uint64_t examples) {
  const absl::Time now = clock_->Now();
  MutexLock lock(mu_);
  pushed_examples_ = std::max(pushed_examples_, examples);
  progress_.set_compute_seconds_total(progress_.compute_seconds_total() + absl::ToDoubleSeconds(begin - mark_));
  progress_.set_push_seconds_total(progress_.push_seconds_total() + absl::ToDoubleSeconds(now - begin));
  mark_ = now;
}

void ClientProgress::OnStepPushed() {
  const absl::Time now = clock_->Now();
  Span(kCompute, compute_begin_, now);
  Span(kStep, step_begin_, now);
  const absl::Duration took = now - std::exchange(step_begin_, now);
  MutexLock lock(mu_);
  CountStep(absl::ToDoubleSeconds(took), absl::ToDoubleSeconds(step_wait_), static_cast<int64_t>(pushed_examples_),
            &progress_);
}

void ClientProgress::OnReport(const ReportBody& report) {
  MutexLock lock(mu_);
  reported_ = true;
  progress_.set_examples_total(progress_.examples_total() + static_cast<int64_t>(report.examples));
  progress_.set_loss_total(progress_.loss_total() + report.loss_sum);
  if (report.correct >= 0) progress_.set_correct_total(progress_.correct_total() + report.correct);
}

void ClientProgress::OnEpoch(double epoch) {
  MutexLock lock(mu_);
  progress_.set_epoch(epoch);
}

void ClientProgress::SetLearningRate(double rate) {
  MutexLock lock(mu_);
  progress_.set_learning_rate(rate);
}

int64_t ClientProgress::steps_total() {
  MutexLock lock(mu_);
  return progress_.steps_total();
}

void ClientProgress::Describe(v1::WorkerProgress* progress) {
  MutexLock lock(mu_);
  *progress = progress_;
}

}  // namespace rubato::client
