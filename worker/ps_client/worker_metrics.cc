#include "worker/ps_client/worker_metrics.h"

#include <array>
#include <vector>

#include "common/metrics/buckets.h"
#include "common/metrics/plan_metrics.h"

namespace rubato::worker {
namespace {

constexpr std::array<double, 8> kStalenessBounds = {0, 1, 2, 4, 8, 16, 32, 62};

void AddStaleness(const v1::WorkerProgress& progress, MetricText* text) {
  std::vector<int64_t> counts(kStalenessBounds.size() + 1);
  double sum = 0;
  for (int staleness = 0; staleness < progress.staleness_counts_size(); ++staleness) {
    counts[BucketOf(kStalenessBounds, staleness)] += progress.staleness_counts(staleness);
    sum += static_cast<double>(staleness) * static_cast<double>(progress.staleness_counts(staleness));
  }
  text->Histogram(
      "rubato_worker_staleness",
      "Updates of others that came between the weights of a step and its push; 63 stands for that and more.",
      kStalenessBounds, counts, sum);
}

}  // namespace

void AddWorkerMetrics(const v1::WorkerProgress& progress, const v1::Plan& plan, MetricText* text) {
  const auto counter = [text](absl::string_view name, absl::string_view help, int64_t value) {
    text->Counter(name, help, static_cast<double>(value));
  };
  counter("rubato_worker_steps_total", "Steps that were done.", progress.steps_total());
  counter("rubato_worker_examples_total", "Examples that were trained on.", progress.examples_total());
  text->Counter("rubato_worker_loss_total", "Sum over examples of the training loss.", progress.loss_total());
  text->Counter("rubato_worker_correct_total", "Examples that were classified correctly in training.",
                progress.correct_total());
  counter("rubato_worker_non_finite_total", "Steps with a loss or gradient that was not finite.",
          progress.non_finite_total());
  counter("rubato_worker_overflows_total", "Steps that contributed nothing because gradients overflowed in FP16.",
          progress.overflow_total());
  text->Histogram("rubato_worker_step_seconds", "Duration of a step.", kStepSecondsBounds,
                  progress.step_seconds_counts(), progress.step_seconds_total());
  text->Counters("rubato_worker_phase_seconds_total", "Where the time of steps went.",
                 {{{{"phase", "data"}}, progress.data_seconds_total()},
                  {{{"phase", "compute"}}, progress.compute_seconds_total()},
                  {{{"phase", "push"}}, progress.push_seconds_total()},
                  {{{"phase", "pull_wait"}}, progress.pull_wait_seconds_total()}});
  counter("rubato_worker_pushes_total", "Answered messages with a gradient.", progress.pushes_total());
  counter("rubato_worker_pulls_total", "Answered messages with weights.", progress.pulls_total());
  counter("rubato_worker_sent_bytes_total", "Bytes of gradients sent.", progress.sent_bytes_total());
  counter("rubato_worker_received_bytes_total", "Bytes of weights received.", progress.received_bytes_total());
  AddStaleness(progress, text);
  text->Gauge("rubato_worker_step", "The step that the worker is in.", static_cast<double>(progress.step()));
  text->Gauge("rubato_worker_epoch", "Its position in passes over the training set.", progress.epoch());
  text->Gauge("rubato_worker_learning_rate", "The learning rate at this position.", progress.learning_rate());
  if (progress.loss_scale() > 0) {
    text->Gauge("rubato_worker_loss_scale", "In FP16 what the loss is multiplied by.", progress.loss_scale());
  }
  text->Gauge("rubato_worker_waiting", "1 while the step waits for other tasks.",
              progress.waiting_for().empty() ? 0 : 1);
  text->Gauge("rubato_worker_entry_wait_seconds", "How long the worker waited for its first step under its plan.",
              progress.entry_wait_seconds());
  AddPlanMetrics(plan, text);
}

}  // namespace rubato::worker
