#include "coordinator/record/run_record.h"

#include <cmath>
#include <string>

#include "common/config/local_sgd.h"
#include "common/metrics/step_count.h"
#include "common/task.h"

namespace rubato::coordinator {
namespace {

// Counts are doubles in the record (proto/run_record.proto).
double Count(int64_t count) { return static_cast<double>(count); }

std::string Text(absl::string_view text) { return std::string(text); }

template <typename Line>
void SetLoss(double loss, Line* line) {
  if (std::isfinite(loss)) {
    line->set_loss(loss);
  } else {
    line->set_diverged(true);
  }
}

void AddWorker(uint32_t index, const v1::WorkerProgress& progress, v1::ProgressLine* line) {
  const ProgressTotals totals = {
      .staleness_counts = {progress.staleness_counts().begin(), progress.staleness_counts().end()}};
  v1::WorkerTotals* worker = line->add_workers();
  worker->set_index(index);
  worker->set_step(Count(progress.step()));
  worker->set_examples(Count(progress.examples_total()));
  worker->set_data_seconds(progress.data_seconds_total());
  worker->set_compute_seconds(progress.compute_seconds_total());
  worker->set_push_seconds(progress.push_seconds_total());
  worker->set_pull_wait_seconds(progress.pull_wait_seconds_total());
  worker->set_work_seconds_p50(WorkQuantile(progress, 0.5));
  worker->set_work_seconds_p90(WorkQuantile(progress, 0.9));
  worker->set_staleness_mean(totals.StalenessMean());
  if (progress.loss_scale() <= 0) return;
  worker->set_loss_scale(progress.loss_scale());
  worker->set_overflows(Count(progress.overflow_total()));
}

// Of the members that are there; the plan says them of those with whom it was decided.
void AddBatchSizes(const v1::Plan& plan, v1::PlanLine* line) {
  int place = 0;
  for (const v1::TaskId& member : plan.members()) {
    while (place < plan.decided_members_size() && plan.decided_members(place) < member.index()) ++place;
    if (place < plan.batch_sizes_size()) line->add_batch_sizes(plan.batch_sizes(place));
  }
}

}  // namespace

v1::RunRecordLine StartLine(double t, const v1::JobConfig& config, int64_t train_examples) {
  v1::RunRecordLine record;
  v1::StartLine* line = record.mutable_start();
  line->set_t(t);
  line->set_job(config.name());
  line->set_mode(config.consistency().mode());
  line->set_staleness_bound(Count(config.consistency().staleness_bound()));
  line->set_workers(config.cluster().workers());
  line->set_servers(config.cluster().servers());
  line->set_seed(config.seed());
  line->set_batch_size(Count(config.training().batch_size()));
  line->set_sync_every(Count(BatchesPerStep(config)));
  line->set_train_examples(Count(train_examples));
  line->set_epochs(Count(config.training().epochs()));
  const v1::EvaluationConfig& evaluation = config.evaluation();
  line->set_target_accuracy(evaluation.target_accuracy());
  if (evaluation.target_auc() > 0) line->set_target_auc(evaluation.target_auc());
  if (evaluation.target_rmse() > 0) line->set_target_rmse(evaluation.target_rmse());
  line->set_loss(config.model().loss());
  return record;
}

v1::RunRecordLine ProgressLine(double t, const v1::JobConfig& config, const JobProgress::Interval& interval,
                               double epoch, const v1::Plan& plan,
                               const std::map<uint32_t, v1::WorkerProgress>& workers) {
  const ProgressTotals& totals = interval.totals;
  v1::RunRecordLine record;
  v1::ProgressLine* line = record.mutable_progress();
  line->set_t(t);
  line->set_step(Count(totals.step));
  line->set_epoch(epoch);
  line->set_examples(Count(totals.examples));
  line->set_examples_per_second(interval.examples_per_second);
  if (totals.examples > 0) {
    SetLoss(interval.loss, line);
    // Of clients only if they tell.
    const v1::ModelConfig::Loss loss = config.model().loss();
    const bool has_accuracy = loss == v1::ModelConfig::SOFTMAX_CROSS_ENTROPY ||
                              loss == v1::ModelConfig::BINARY_CROSS_ENTROPY ||
                              (config.model().has_manifest() && totals.correct > 0);
    if (has_accuracy) line->set_accuracy(interval.accuracy);
  }
  line->set_learning_rate(totals.learning_rate);
  line->set_generation(static_cast<uint32_t>(plan.generation()));
  line->set_mode(plan.mode());
  line->set_staleness_mean(totals.StalenessMean());
  for (int64_t steps : totals.staleness_counts) line->add_staleness_counts(Count(steps));
  line->set_waiting_share(totals.WaitingShare());
  const v1::GradientNoise& noise = interval.gradient_noise;
  if (noise.has_norm()) line->set_gradient_norm(noise.norm());
  if (noise.has_scale_examples()) line->set_gradient_noise_scale(noise.scale_examples());
  if (noise.has_lasting_share()) line->set_lasting_share(noise.lasting_share());
  line->set_sent_bytes(Count(totals.sent_bytes));
  line->set_received_bytes(Count(totals.received_bytes));
  for (const auto& [index, progress] : workers) AddWorker(index, progress, line);
  return record;
}

v1::RunRecordLine EvaluationLine(double t, double epoch, int64_t step, const v1::EvaluationResult& result, bool final) {
  v1::RunRecordLine record;
  v1::EvaluationLine* line = record.mutable_evaluation();
  line->set_t(t);
  line->set_step(Count(step));
  line->set_epoch(epoch);
  SetLoss(result.loss(), line);
  if (result.has_accuracy()) line->set_accuracy(result.accuracy());
  if (result.has_r2()) line->set_r2(result.r2());
  if (result.has_auc()) line->set_auc(result.auc());
  if (result.has_calibration()) line->set_calibration(result.calibration());
  if (result.has_recall()) line->set_recall(result.recall());
  line->set_examples(Count(result.examples()));
  line->set_final(final);
  return record;
}

v1::RunRecordLine CheckpointLine(double t, const v1::CutRecord& cut, int64_t bytes, double seconds) {
  v1::RunRecordLine record;
  v1::CheckpointLine* line = record.mutable_checkpoint();
  line->set_t(t);
  line->set_step(static_cast<double>(cut.plan().first_step()));
  line->set_epoch(cut.epoch());
  line->set_name(cut.cut().name());
  line->set_bytes(static_cast<double>(bytes));
  line->set_seconds(seconds);
  return record;
}

v1::RunRecordLine RollbackLine(double t, const v1::JournalTerm& term) {
  v1::RunRecordLine record;
  v1::RollbackLine* line = record.mutable_rollback();
  line->set_t(t);
  line->set_step(static_cast<double>(term.rollback().cut().plan().first_step()));
  line->set_epoch(term.rollback().cut().epoch());
  line->set_term(static_cast<uint32_t>(term.term()));
  line->set_reason(term.rollback().reason());
  return record;
}

v1::RunRecordLine PlanLine(double t, const v1::Plan& plan, absl::string_view reason, const PlanTimes& times) {
  v1::RunRecordLine record;
  v1::PlanLine* line = record.mutable_plan();
  line->set_t(t);
  line->set_generation(static_cast<uint32_t>(plan.generation()));
  line->set_mode(plan.mode());
  line->set_staleness_bound(Count(plan.staleness_bound()));
  line->set_first_step(Count(plan.first_step()));
  line->set_quorum(Count(plan.quorum()));
  line->set_learning_rate_scale(LearningRateScale(plan));
  for (const v1::TaskId& member : plan.members()) line->add_members(member.index());
  AddBatchSizes(plan, line);
  if (plan.sync_every() > 0) line->set_sync_every(plan.sync_every());
  if (plan.has_momentum()) line->set_momentum(plan.momentum());
  if (plan.uncompressed()) line->set_uncompressed(true);
  line->set_reason(Text(reason));
  line->set_round_trip_seconds(times.round_trip_seconds);
  line->set_stall_seconds(times.stall_seconds);
  line->set_slowest_step_seconds(times.slowest_step_seconds);
  return record;
}

v1::RunRecordLine MemberLine(double t, const v1::TaskId& task, v1::MemberLine::Event event, absl::string_view reason) {
  v1::RunRecordLine record;
  v1::MemberLine* line = record.mutable_member();
  line->set_t(t);
  line->set_task(TaskName(task));
  line->set_event(event);
  line->set_reason(Text(reason));
  return record;
}

v1::RunRecordLine RequestLine(double t, absl::string_view request, absl::string_view by, absl::string_view refused) {
  v1::RunRecordLine record;
  v1::RequestLine* line = record.mutable_request();
  line->set_t(t);
  line->set_request(Text(request));
  line->set_by(Text(by));
  line->set_refused(Text(refused));
  return record;
}

v1::RunRecordLine EndLine(double t, absl::string_view error, const ProgressTotals& totals, double training_seconds) {
  v1::RunRecordLine record;
  v1::EndLine* line = record.mutable_end();
  line->set_t(t);
  line->set_ok(error.empty());
  line->set_error(Text(error));
  line->set_examples(Count(totals.examples));
  line->set_examples_per_second(training_seconds > 0 ? Count(totals.examples) / training_seconds : 0);
  line->set_non_finite(Count(totals.non_finite));
  line->set_overflows(Count(totals.overflows));
  return record;
}

}  // namespace rubato::coordinator
