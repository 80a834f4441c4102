// CoordinatorCore: checkpoints, and the way to DONE or FAILED.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/task.h"
#include "coordinator/coordinator_core.h"
#include "coordinator/run_record.h"

namespace rubato::coordinator {
namespace {

constexpr char kFirstCheckpoint[] = "step0";
constexpr char kLastCheckpoint[] = "final";
constexpr char kStopCheckpoint[] = "stopped";
// How long tasks have to leave after Stop.
constexpr absl::Duration kFarewell = absl::Seconds(2);

}  // namespace

void CoordinatorCore::BeginCheckpoint(const std::string& name) {
  checkpoint_ = name;
  checkpoint_done_.clear();
  v1::Directive directive;
  directive.mutable_checkpoint()->set_name(name);
  SendToAll(v1::TaskId::SERVER, directive);
}

void CoordinatorCore::OnCheckpointDone(const v1::TaskId& server, const v1::CheckpointDone& done, absl::Time now) {
  if (done.name() != checkpoint_ || checkpoint_.empty() || Ended()) return;
  if (!done.error().empty()) {
    return Fail(absl::StrCat(stop_reason_ ? *stop_reason_ + "; " : "", TaskName(server), ": checkpoint ", done.name(),
                             " failed: ", done.error()),
                now);
  }
  checkpoint_done_.insert(server.index());
  if (checkpoint_done_.size() < config_.cluster().servers()) return;
  if (checkpoint_ == kFirstCheckpoint && phase_ == v1::JobStatus::STARTING) StartTraining(now);
  if (checkpoint_ == kLastCheckpoint && phase_ == v1::JobStatus::FINISHING) {
    phase_ = v1::JobStatus::DONE;
    End(now);
  }
  if (checkpoint_ == kStopCheckpoint) {
    Log('I', "checkpoint stopped is written: another job may go on from it");
    Fail(stop_reason_.value_or("stopped"), now);
  }
}

void CoordinatorCore::BeginFinishing(absl::Time now) {
  phase_ = v1::JobStatus::FINISHING;
  finishing_since_ = now;
  training_end_ = now;
  JournalPhase(phase_, now);
  Log('I', "the data is used up and all workers have left");
  Metrics(ProgressLine(Seconds(now), config_, progress_.TakeInterval(now), Epoch(), held_plan_, progress_.ByWorker()));
  WritePlanLine(watch_.Flush(membership_), now);
  Apply(plan_maker_->Close(), now);
  if (config_.cluster().evaluators() == 0) return;
  v1::JournalRecord record;
  *record.mutable_evaluation()->mutable_request() = evaluations_.Final(Epoch());
  record.mutable_evaluation()->set_final(true);
  v1::Directive directive;
  *directive.mutable_evaluate() = record.evaluation().request();
  Journal(std::move(record), false);
  SendToAll(v1::TaskId::EVALUATOR, directive);
}

void CoordinatorCore::ContinueFinishing(absl::Time now) {
  if (!checkpoint_.empty() && checkpoint_ != kFirstCheckpoint) return;
  if (config_.cluster().evaluators() > 0 && !evaluations_.FinalDone()) {
    if (!membership_.Alive(v1::TaskId::EVALUATOR).empty()) evaluator_seen_ = now;
    absl::Time give_up = std::max(finishing_since_, evaluator_seen_) + 2 * membership_.lease();
    if (membership_.Find(v1::TaskId::EVALUATOR, 0) == nullptr) {
      give_up = std::max(give_up, options_.start + absl::Seconds(config_.cluster().start_timeout_seconds()));
    }
    const absl::Time hung = finishing_since_ + absl::Seconds(config_.cluster().wait_timeout_seconds());
    if (now < std::min(give_up, hung)) return;
    Log('W', "the final weights are not evaluated: no evaluator has answered");
  }
  BeginCheckpoint(kLastCheckpoint);
}

Actions CoordinatorCore::RequestStop(const std::string& reason, absl::Time now) {
  // Before training there is nothing to keep, and "final" is as good.
  if (!training_ || Ended() || stop_reason_ || checkpoint_ == kLastCheckpoint) return Abort(reason, now);
  stop_reason_ = reason;
  stopping_since_ = now;
  Log('W', absl::StrCat("the job is to stop: ", reason, "; the weights are written first"));
  BeginCheckpoint(kStopCheckpoint);
  return TakeActions();
}

Actions CoordinatorCore::Abort(const std::string& reason, absl::Time now) {
  Fail(reason, now);
  return TakeActions();
}

void CoordinatorCore::CheckStopping(absl::Time now) {
  const double patience = config_.cluster().wait_timeout_seconds();
  if (!stop_reason_ || Ended() || now - stopping_since_ < absl::Seconds(patience)) return;
  Fail(absl::StrCat(*stop_reason_, "; gave up waiting for ", WaitingFor()), now);
}

void CoordinatorCore::Fail(const std::string& error, absl::Time now) {
  if (Ended()) return;
  error_ = error;
  phase_ = v1::JobStatus::FAILED;
  training_end_ = std::min(training_end_, now);
  WritePlanLine(watch_.Flush(membership_), now);
  if (plan_maker_) Apply(plan_maker_->Close(), now);
  End(now);
}

void CoordinatorCore::End(absl::Time now) {
  ended_at_ = now;
  if (placed_) JournalPhase(phase_, now);
  const double seconds = training_ ? absl::ToDoubleSeconds(training_end_ - training_start_) : 0;
  Metrics(EndLine(Seconds(now), error_, progress_.Totals(), seconds));
  Log(error_.empty() ? 'I' : 'E', error_.empty() ? "the job is done" : absl::StrCat("the job failed: ", error_));
  for (v1::TaskId::Role role : {v1::TaskId::SERVER, v1::TaskId::WORKER, v1::TaskId::EVALUATOR}) {
    for (const Member* member : membership_.Alive(role)) SendStop(member->id, error_);
  }
}

void CoordinatorCore::CheckEnded(absl::Time now) {
  if (finish_sent_) return;
  const bool somebody = std::any_of(membership_.all().begin(), membership_.all().end(),
                                    [](const auto& entry) { return entry.second.state == v1::TaskStatus::ALIVE; });
  if (somebody && now - ended_at_ < kFarewell) return;
  finish_sent_ = true;
  actions_.push_back(Finish{error_.empty() ? absl::OkStatus() : absl::AbortedError(error_)});
}

}  // namespace rubato::coordinator
