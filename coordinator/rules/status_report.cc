#include "coordinator/rules/status_report.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/task.h"

namespace rubato::coordinator {
namespace {

void AddTask(const Member& member, absl::Time now, v1::JobStatus* status) {
  v1::TaskStatus* task = status->add_tasks();
  *task->mutable_task() = member.id;
  task->set_address(member.address);
  task->set_state(member.state);
  task->set_seconds_since_heard(absl::ToDoubleSeconds(now - member.last_heard));
  task->set_reason(member.reason);
  if (member.id.role() == v1::TaskId::SERVER) *task->mutable_server() = member.server;
  if (member.id.role() == v1::TaskId::WORKER) *task->mutable_progress() = member.progress;
  task->set_host_name(member.info.host_name());
  task->set_process_id(member.info.process_id());
  task->set_resident_bytes(member.resident_bytes);
  task->set_last_problem(member.last_problem);
  if (member.trace.id() != 0) *task->mutable_trace() = member.trace;
  task->set_metrics_address(member.info.metrics_address());
}

}  // namespace

std::string WaitingText(const JobState& job, const StartingPhase& starting, const CheckpointRound& checkpoints,
                        const CutKeeper& cuts) {
  if (job.phase == v1::JobStatus::STARTING && !job.placed) return starting.MissingTasks();
  if (job.Ended()) return "";
  const std::string plan = job.plan_maker->WaitingFor();
  if (!plan.empty()) return plan;
  if (const std::optional<v1::TaskId> worker = job.InitialWeightsFrom(); worker && starting.assigning()) {
    return absl::StrCat(TaskName(*worker), " to assign the initial weights");
  }
  if (const std::vector<std::string> names = checkpoints.Missing(); !names.empty()) {
    return absl::StrCat(absl::StrJoin(names, ", "), " to write checkpoint ", checkpoints.name());
  }
  if (const std::string stop = cuts.StopWaitsFor(); !stop.empty()) return stop;
  if (job.phase == v1::JobStatus::FINISHING) return "the evaluator to measure the final weights";
  std::vector<std::string> waits;
  for (const Member* worker : job.membership.Alive(v1::TaskId::WORKER)) {
    if (worker->progress.waiting_for().empty()) continue;
    waits.push_back(absl::StrCat(TaskName(worker->id), " in ", worker->progress.waiting_for()));
  }
  return absl::StrJoin(waits, "; ");
}

v1::JobStatus ReportStatus(const JobState& job, const std::string& waiting_for, absl::Time now) {
  v1::JobStatus status;
  status.set_job_name(job.config.name());
  status.set_phase(job.phase);
  if (job.held_plan.generation() != 0) *status.mutable_plan() = job.held_plan;
  if (job.plan_maker) status.set_announced_generation(job.plan_maker->announced_generation());
  for (const auto& [key, member] : job.membership.all()) AddTask(member, now, &status);
  const ProgressTotals totals = job.progress.Totals();
  status.set_seconds_since_start(job.Seconds(std::min(now, job.training_end)));
  status.set_examples_done(job.dispatcher ? job.dispatcher->examples_done() : totals.examples);
  status.set_epoch(job.Epoch());
  status.set_epochs_total(job.EpochsTotal());
  status.set_examples_per_second(job.progress.ExamplesPerSecond());
  status.set_training_loss(job.progress.last_interval().loss);
  status.set_waiting_share(totals.WaitingShare());
  status.set_mean_staleness(totals.StalenessMean());
  *status.mutable_gradient_noise() = job.RecentGradientNoise();
  if (const v1::EvaluationResult* result = job.evaluations.last_result()) {
    status.set_evaluation_loss(result->loss());
    if (result->has_accuracy()) status.set_evaluation_accuracy(result->accuracy());
    if (result->has_r2()) status.set_evaluation_r2(result->r2());
    if (result->has_auc()) status.set_evaluation_auc(result->auc());
    if (result->has_calibration()) status.set_evaluation_calibration(result->calibration());
    if (result->has_recall()) status.set_evaluation_recall(result->recall());
  }
  status.set_evaluation_recall_at(job.config.evaluation().recall_at());
  status.set_waiting_for(waiting_for);
  status.set_error(job.end.error());
  status.set_seconds_left(job.SecondsLeft());
  status.set_step(totals.step);
  status.set_run_directory(job.config.run_directory());
  status.set_lease_seconds(absl::ToDoubleSeconds(job.membership.lease()));
  *status.mutable_counts() = job.counts;
  status.set_term(job.term);
  if (job.Ended()) *status.mutable_end() = job.end;
  return status;
}

}  // namespace rubato::coordinator
