#include "coordinator/record/job_metrics.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/metrics/plan_metrics.h"
#include "common/metrics/step_count.h"
#include "common/task.h"

namespace rubato::coordinator {
namespace {

using Samples = std::vector<MetricText::Sample>;

void AddProgress(const v1::JobStatus& status, MetricText* text) {
  text->Counter("rubato_job_examples_total", "Examples that are finished.",
                static_cast<double>(status.examples_done()));
  text->Gauge("rubato_job_step", "The furthest worker's step.", static_cast<double>(status.step()));
  text->Gauge("rubato_job_epoch", "Passes over the training set that are done.", status.epoch());
  text->Gauge("rubato_job_epochs", "Passes over the training set that the job makes.", status.epochs_total());
  text->Gauge("rubato_job_examples_per_second", "Speed over the last seconds.", status.examples_per_second());
  text->Gauge("rubato_job_training_loss", "Mean training loss over the last interval.", status.training_loss());
  text->Gauge("rubato_job_waiting_ratio", "Part of the workers' time that went into waiting for weights.",
              status.waiting_share());
  text->Gauge("rubato_job_staleness_mean", "Mean staleness of all pushes.", status.mean_staleness());
  if (status.gradient_noise().has_norm()) {
    text->Gauge("rubato_job_gradient_norm", "Root mean square of the norms of the gradients that SYNC steps apply.",
                status.gradient_noise().norm());
  }
  if (status.gradient_noise().has_scale_examples()) {
    text->Gauge("rubato_job_gradient_noise_scale_examples",
                "Gradient noise scale: with batches of so many examples together half of an update is noise.",
                status.gradient_noise().scale_examples());
  }
  if (status.gradient_noise().has_lasting_share()) {
    text->Gauge("rubato_job_lasting_ratio",
                "Part of the differences between workers' gradients that stays from step to step.",
                status.gradient_noise().lasting_share());
  }
  text->Gauge("rubato_job_training_seconds", "Time since training began.", status.seconds_since_start());
  if (status.seconds_left() >= 0) {
    text->Gauge("rubato_job_left_seconds", "Estimated time that is left.", status.seconds_left());
  }
  if (status.has_evaluation_accuracy()) {
    text->Gauge("rubato_job_evaluation_accuracy", "Held-out accuracy of the last evaluation.",
                status.evaluation_accuracy());
  }
  if (status.has_evaluation_auc()) {
    text->Gauge("rubato_job_evaluation_auc", "Area under the receiver operating characteristic of the last evaluation.",
                status.evaluation_auc());
  }
  if (status.has_evaluation_calibration()) {
    text->Gauge("rubato_job_evaluation_calibration_ratio",
                "Mean predicted probability of class 1 in the last evaluation by the share of examples of class 1.",
                status.evaluation_calibration());
  }
  if (status.has_evaluation_recall()) {
    text->Gauge("rubato_job_evaluation_recall",
                "Share of the held-out examples whose class is among the evaluation.recall_at largest outputs.",
                status.evaluation_recall());
  }
  if (status.has_evaluation_r2()) {
    text->Gauge("rubato_job_evaluation_r2", "Share of the variance of the held-out labels that the model explains.",
                status.evaluation_r2());
  }
  if (status.has_evaluation_loss()) {
    text->Gauge("rubato_job_evaluation_loss", "Held-out loss of the last evaluation.", status.evaluation_loss());
  }
}

void AddCounts(const v1::JobCounts& counts, MetricText* text) {
  const auto counter = [text](absl::string_view name, absl::string_view help, int64_t value) {
    text->Counter(name, help, static_cast<double>(value));
  };
  counter("rubato_job_plans_total", "Plans that were committed.", counts.plans_total());
  counter("rubato_job_mode_changes_total", "Plans with another mode or staleness bound than the one before.",
          counts.mode_changes_total());
  counter("rubato_job_joined_total", "Tasks that have joined.", counts.joined_total());
  counter("rubato_job_left_total", "Tasks that have left by themselves.", counts.left_total());
  counter("rubato_job_evicted_total", "Tasks that were evicted.", counts.evicted_total());
  counter("rubato_job_evaluations_total", "Evaluations that succeeded.", counts.evaluations_total());
  counter("rubato_job_checkpoints_total", "Checkpoints of the job in training that are complete.",
          counts.checkpoints_total());
  counter("rubato_job_rollbacks_total", "How often the job went back to a checkpoint.", counts.rollbacks_total());
  text->Counter("rubato_job_stall_seconds_total", "Of each plan the longest wait for its first step, added up.",
                counts.stall_seconds_total());
}

void AddTasks(const v1::JobStatus& status, MetricText* text) {
  Samples alive, heard, steps, durations, median_work, slow_work;
  for (const v1::TaskStatus& task : status.tasks()) {
    const MetricText::Labels labels = {{"task", TaskName(task.task())},
                                       {"task_role", absl::AsciiStrToLower(v1::TaskId::Role_Name(task.task().role()))}};
    const bool is_alive = task.state() == v1::TaskStatus::ALIVE;
    alive.push_back({labels, is_alive ? 1.0 : 0.0});
    if (!is_alive) continue;
    heard.push_back({labels, task.seconds_since_heard()});
    if (task.task().role() != v1::TaskId::WORKER) continue;
    const MetricText::Labels worker = {{"worker", absl::StrCat(task.task().index())}};
    steps.push_back({worker, static_cast<double>(task.progress().step())});
    durations.push_back({worker, task.progress().mean_step_seconds()});
    median_work.push_back({worker, WorkQuantile(task.progress(), 0.5)});
    slow_work.push_back({worker, WorkQuantile(task.progress(), 0.9)});
  }
  text->Gauges("rubato_job_task_alive", "1 for a task that takes part, 0 for one that has left or was evicted.", alive);
  text->Gauges("rubato_job_task_silent_seconds", "Time since the last heartbeat of a living task.", heard);
  text->Gauges("rubato_job_worker_step", "The step that a living worker is in.", steps);
  text->Gauges("rubato_job_worker_step_mean_seconds", "Mean duration of its latest steps.", durations);
  text->Gauges("rubato_job_worker_work_median_seconds", "Of its latest steps without their wait for weights.",
               median_work);
  text->Gauges("rubato_job_worker_work_p90_seconds",
               "Nine of ten of its latest steps took that at most without their wait.", slow_work);
}

}  // namespace

void AddJobMetrics(const v1::JobStatus& status, const v1::JobConfig& config, MetricText* text) {
  text->Gauges("rubato_job_info", "1, with the name of the job and its run directory.",
               {{{{"name", status.job_name()}, {"run_directory", status.run_directory()}}, 1}});
  Samples phases;
  for (int phase = v1::JobStatus::STARTING; phase <= v1::JobStatus::FAILED; ++phase) {
    const auto value = static_cast<v1::JobStatus::Phase>(phase);
    phases.push_back({{{"phase", v1::JobStatus::Phase_Name(value)}}, status.phase() == value ? 1.0 : 0.0});
  }
  text->Gauges("rubato_job_phase", "1 for the phase that the job is in, 0 for the others.", phases);
  text->Gauge("rubato_job_lease_seconds", "A task that is silent for longer is evicted.",
              config.cluster().lease_seconds());
  text->Gauge("rubato_job_waiting", "1 while the job as a whole waits for tasks.",
              status.waiting_for().empty() ? 0 : 1);
  AddProgress(status, text);
  AddCounts(status.counts(), text);
  if (!status.checkpoint().last().empty()) {
    text->Gauge("rubato_job_checkpoint_age_seconds", "Time since the last checkpoint was complete.",
                status.checkpoint().seconds_since_last());
  }
  AddTasks(status, text);
  AddPlanMetrics(status.plan(), text);
}

std::string MetricTargets(const v1::JobStatus& status, const std::string& own_address) {
  nlohmann::ordered_json targets = nlohmann::ordered_json::array({own_address});
  for (const v1::TaskStatus& task : status.tasks()) {
    if (task.state() == v1::TaskStatus::ALIVE && !task.metrics_address().empty()) {
      targets.push_back(task.metrics_address());
    }
  }
  const nlohmann::ordered_json group = {{"targets", targets}, {"labels", {{"rubato_job", status.job_name()}}}};
  return nlohmann::ordered_json::array({group}).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace rubato::coordinator
