// CoordinatorCore: what it tells the operator, and the traces that it has recorded for one.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/config/local_sgd.h"
#include "common/static_partition.h"
#include "common/task.h"
#include "coordinator/coordinator_core.h"

namespace rubato::coordinator {
namespace {

constexpr double kLongestTraceSeconds = 600;

}  // namespace

double CoordinatorCore::EpochsTotal() const {
  const v1::TrainingConfig& training = config_.training();
  double total =
      training.epochs() > 0 ? static_cast<double>(training.epochs()) : std::numeric_limits<double>::infinity();
  if (training.max_steps() > 0 && train_examples_ > 0) {
    const double steps = static_cast<double>(training.max_steps()) * config_.cluster().workers();
    total =
        std::min(total, steps * static_cast<double>(ExamplesPerStep(config_)) / static_cast<double>(train_examples_));
  }
  return total;
}

double CoordinatorCore::Epoch() const {
  if (train_examples_ == 0) return 0;
  const ProgressTotals totals = progress_.Totals();
  if (Static()) return totals.epoch;
  double epoch = static_cast<double>(totals.examples) / static_cast<double>(train_examples_);
  // Shards that were given out twice count twice here.
  if (config_.training().epochs() > 0) epoch = std::min(epoch, static_cast<double>(config_.training().epochs()));
  return epoch;
}

double CoordinatorCore::SecondsLeft() const {
  const double rate = progress_.ExamplesPerSecond();
  if (phase_ != v1::JobStatus::TRAINING || rate <= 0 || train_examples_ == 0) return -1;
  return std::max(0.0, (EpochsTotal() - Epoch()) * static_cast<double>(train_examples_) / rate);
}

std::string CoordinatorCore::WaitingFor() const {
  if (phase_ == v1::JobStatus::STARTING && !placed_) return MissingTasks();
  if (Ended()) return "";
  const std::string plan = plan_maker_->WaitingFor();
  if (!plan.empty()) return plan;
  if (!checkpoint_.empty() && checkpoint_done_.size() < config_.cluster().servers()) {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < config_.cluster().servers(); ++i) {
      if (!checkpoint_done_.contains(i)) names.push_back(TaskName(v1::TaskId::SERVER, i));
    }
    return absl::StrCat(absl::StrJoin(names, ", "), " to write checkpoint ", checkpoint_);
  }
  if (phase_ == v1::JobStatus::FINISHING) return "the evaluator to measure the final weights";
  std::vector<std::string> waits;
  for (const Member* worker : membership_.Alive(v1::TaskId::WORKER)) {
    if (worker->progress.waiting_for().empty()) continue;
    waits.push_back(absl::StrCat(TaskName(worker->id), " in ", worker->progress.waiting_for()));
  }
  return absl::StrJoin(waits, "; ");
}

v1::JobStatus CoordinatorCore::Status(absl::Time now) const {
  v1::JobStatus status;
  status.set_job_name(config_.name());
  status.set_phase(phase_);
  if (held_plan_.generation() != 0) *status.mutable_plan() = held_plan_;
  if (plan_maker_) status.set_announced_generation(plan_maker_->announced_generation());
  for (const auto& [key, member] : membership_.all()) {
    v1::TaskStatus* task = status.add_tasks();
    *task->mutable_task() = member.id;
    task->set_address(member.address);
    task->set_state(member.state);
    task->set_seconds_since_heard(absl::ToDoubleSeconds(now - member.last_heard));
    task->set_reason(member.reason);
    if (key.first == v1::TaskId::SERVER) *task->mutable_server() = member.server;
    if (key.first == v1::TaskId::WORKER) *task->mutable_progress() = member.progress;
    task->set_host_name(member.info.host_name());
    task->set_process_id(member.info.process_id());
    task->set_resident_bytes(member.resident_bytes);
    task->set_last_problem(member.last_problem);
    if (member.trace.id() != 0) *task->mutable_trace() = member.trace;
    task->set_metrics_address(member.info.metrics_address());
  }
  const ProgressTotals totals = progress_.Totals();
  status.set_seconds_since_start(Seconds(std::min(now, training_end_)));
  status.set_examples_done(dispatcher_ ? dispatcher_->examples_done() : totals.examples);
  status.set_epoch(Epoch());
  status.set_epochs_total(EpochsTotal());
  status.set_examples_per_second(progress_.ExamplesPerSecond());
  status.set_training_loss(progress_.last_interval().loss);
  status.set_waiting_share(totals.WaitingShare());
  status.set_mean_staleness(totals.StalenessMean());
  if (const v1::EvaluationResult* result = evaluations_.last_result()) {
    status.set_evaluation_loss(result->loss());
    if (result->has_accuracy()) status.set_evaluation_accuracy(result->accuracy());
    if (result->has_r2()) status.set_evaluation_r2(result->r2());
  }
  status.set_waiting_for(WaitingFor());
  status.set_error(error_);
  status.set_seconds_left(SecondsLeft());
  status.set_step(totals.step);
  status.set_run_directory(config_.run_directory());
  status.set_lease_seconds(absl::ToDoubleSeconds(membership_.lease()));
  *status.mutable_counts() = counts_;
  return status;
}

absl::StatusOr<Actions> CoordinatorCore::RequestTrace(const v1::TraceJobRequest& request, v1::TraceJobReply* reply,
                                                      absl::Time now) {
  // Written so that NaN is refused too.
  if (!(request.seconds() > 0 && request.seconds() <= kLongestTraceSeconds)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("seconds: value %g; allowed: above 0, up to %g", request.seconds(), kLongestTraceSeconds));
  }
  if (phase_ != v1::JobStatus::TRAINING) {
    return absl::FailedPreconditionError(
        absl::StrCat("a trace is recorded while the job is TRAINING; it is ", v1::JobStatus::Phase_Name(phase_)));
  }
  trace_id_ = std::max(trace_id_ + 1, static_cast<uint64_t>(absl::ToUnixMicros(now)));
  reply->set_id(trace_id_);
  v1::Directive directive;
  directive.mutable_record_trace()->set_id(trace_id_);
  directive.mutable_record_trace()->set_seconds(request.seconds());
  for (v1::TaskId::Role role : {v1::TaskId::SERVER, v1::TaskId::WORKER}) {
    SendToAll(role, directive);
    for (const Member* member : membership_.Alive(role)) *reply->add_tasks() = member->id;
  }
  return TakeActions();
}

}  // namespace rubato::coordinator
