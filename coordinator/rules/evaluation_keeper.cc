#include "coordinator/rules/evaluation_keeper.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "coordinator/record/run_record.h"

namespace rubato::coordinator {
namespace {

// "accuracy 0.9712, loss 0.1032". `recall_at` is the config's.
std::string EvaluationText(const v1::EvaluationResult& result, int64_t recall_at) {
  std::string text;
  if (result.has_accuracy()) absl::StrAppendFormat(&text, "accuracy %.4f, ", result.accuracy());
  if (result.has_recall()) absl::StrAppendFormat(&text, "recall@%d %.4f, ", recall_at, result.recall());
  if (result.has_auc()) absl::StrAppendFormat(&text, "AUC %.4f, ", result.auc());
  if (result.has_calibration()) absl::StrAppendFormat(&text, "calibration %.4f, ", result.calibration());
  if (result.has_r2()) absl::StrAppendFormat(&text, "R2 %.4f, ", result.r2());
  absl::StrAppendFormat(&text, "loss %.4f", result.loss());
  return text;
}

}  // namespace

void EvaluationKeeper::AskWhenDue(int64_t at_step) {
  if (std::optional<v1::Evaluate> request = job_->evaluations.Due(job_->Epoch(), at_step)) Ask(*request, false);
}

void EvaluationKeeper::AskForFinal() { Ask(job_->evaluations.Final(job_->Epoch()), true); }

void EvaluationKeeper::Ask(const v1::Evaluate& request, bool final) {
  v1::JournalRecord record;
  *record.mutable_evaluation()->mutable_request() = request;
  record.mutable_evaluation()->set_final(final);
  out_->Journal(std::move(record), false);
  v1::Directive directive;
  *directive.mutable_evaluate() = request;
  out_->SendToAll(v1::TaskId::EVALUATOR, directive);
}

void EvaluationKeeper::Remind(const v1::TaskId& evaluator) {
  if (job_->evaluations.pending() == nullptr) return;
  v1::Directive directive;
  *directive.mutable_evaluate() = *job_->evaluations.pending();
  out_->Send(evaluator, std::move(directive));
}

void EvaluationKeeper::OnResult(const v1::EvaluationResult& result, absl::Time now) {
  if (job_->Ended()) return;  // The record's last line is written.
  const EvaluationSchedule::Entry* entry = job_->evaluations.OnResult(result);
  if (entry == nullptr) return;
  v1::JournalRecord record;
  *record.mutable_evaluation()->mutable_request() = entry->request;
  record.mutable_evaluation()->set_final(entry->final);
  *record.mutable_evaluation()->mutable_result() = result;
  out_->Journal(std::move(record), false);
  if (!result.error().empty()) {
    out_->Log('W', absl::StrFormat("the %sevaluation at epoch %g failed: %s", entry->final ? "final " : "",
                                   entry->request.epoch(), result.error()));
    return;
  }
  const int64_t step = result.step() >= 0 ? result.step() : job_->progress.Totals().step;
  job_->counts.set_evaluations_total(job_->counts.evaluations_total() + 1);
  out_->Metrics(EvaluationLine(job_->Seconds(now), entry->request.epoch(), step, result, entry->final));
  out_->Log('I', absl::StrFormat("%sevaluation at epoch %.2f: %s", entry->final ? "final " : "", entry->request.epoch(),
                                 EvaluationText(result, job_->config.evaluation().recall_at())));
}

}  // namespace rubato::coordinator
