#include "coordinator/rules/job_end.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/proto_enum.h"
#include "common/task.h"
#include "coordinator/record/run_record.h"
#include "coordinator/rules/journal_records.h"

namespace rubato::coordinator {
namespace {

// How long tasks have to leave after Stop.
constexpr absl::Duration kFarewell = absl::Seconds(2);

v1::Stop MakeStop(v1::Stop::Kind kind, const std::string& error) {
  v1::Stop stop;
  stop.set_kind(kind);
  stop.set_error(error);
  return stop;
}

}  // namespace

void JobEnd::Done(absl::Time now) { End(v1::JobStatus::DONE, MakeStop(v1::Stop::DONE, ""), now); }

void JobEnd::Fail(const std::string& error, absl::Time now) {
  End(v1::JobStatus::FAILED, MakeStop(v1::Stop::FAILED, error), now);
}

void JobEnd::RequestStop(const std::string& reason, absl::Time now) {
  // Before training there is nothing to keep.
  if (!job_->training_began || job_->Ended() || stop_reason_) {
    const bool both = stop_reason_ && *stop_reason_ != reason;
    v1::Stop stop = MakeStop(v1::Stop::STOPPED, both ? absl::StrCat(*stop_reason_, "; then ", reason) : reason);
    // Whoever goes on does from there.
    if (!job_->cuts.empty()) stop.set_checkpoint(absl::StrCat("checkpoints/", job_->cuts.back().cut().name()));
    return End(v1::JobStatus::FAILED, stop, now);
  }
  stop_reason_ = reason;
  job_->stop_requested = reason;
  stop_began_ = now;
  out_->Log('W', absl::StrCat("the job is to stop: ", reason, "; a checkpoint is written first"));
  out_->Journal(StopRequestRecord(reason), true);
  if (job_->phase == v1::JobStatus::TRAINING) return cuts_->RequestStop(now);
  if (checkpoints_->name() != kLastCheckpoint) checkpoints_->Begin(kLastCheckpoint);
}

void JobEnd::OnLastCheckpoint(absl::Time now) {
  if (!stop_reason_) return Done(now);
  EndStopped(kLastCheckpoint, now);
}

void JobEnd::EndStopped(const std::string& checkpoint, absl::Time now) {
  v1::Stop stop = MakeStop(v1::Stop::STOPPED, *stop_reason_);
  stop.set_checkpoint(absl::StrCat("checkpoints/", checkpoint));
  End(v1::JobStatus::FAILED, stop, now);
}

void JobEnd::OnCheckpointFailed(const v1::TaskId& server, const v1::CheckpointDone& done, absl::Time now) {
  Fail(absl::StrCat(stop_reason_ ? *stop_reason_ + "; " : "", TaskName(server), ": checkpoint ", done.name(),
                    " failed: ", done.error()),
       now);
}

void JobEnd::CheckStop(absl::FunctionRef<std::string()> waiting_for, absl::Time now) {
  if (stop_reason_ && !job_->Ended() && !cuts_->stopped_in().empty()) return EndStopped(cuts_->stopped_in(), now);
  const absl::Duration timeout = absl::Seconds(job_->config.cluster().wait_timeout_seconds());
  if (!stop_reason_ || job_->Ended() || now - stop_began_ < timeout) return;
  Fail(absl::StrCat(*stop_reason_, "; gave up waiting for ", waiting_for()), now);
}

void JobEnd::End(v1::JobStatus::Phase phase, const v1::Stop& stop, absl::Time now) {
  if (job_->Ended()) return;
  job_->phase = phase;
  job_->end = stop;
  job_->training_end = std::min(job_->training_end, now);
  plans_->Flush(now);
  cuts_->Drop("the job ends");
  if (job_->plan_maker) plans_->Apply(job_->plan_maker->Close(), now);
  plans_->AbortSwitches("the job has ended");
  ended_at_ = now;
  if (job_->placed) out_->Journal(PhaseRecord(*job_, now), true);
  const double seconds = job_->training_began ? absl::ToDoubleSeconds(job_->training_end - job_->training_start) : 0;
  out_->Metrics(EndLine(job_->Seconds(now), stop.error(), job_->progress.Totals(), seconds));
  switch (stop.kind()) {
    case v1::Stop::DONE:
      out_->Log('I', "the job is done");
      break;
    case v1::Stop::STOPPED:
      out_->Log('I', absl::StrCat("the job has ended: ", stop.error()));
      break;
    case v1::Stop::FAILED:
    case v1::Stop::KIND_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::Stop_Kind_Stop_Kind) : out_->Log('E', absl::StrCat("the job failed: ", stop.error()));
      break;
  }
  for (v1::TaskId::Role role : {v1::TaskId::SERVER, v1::TaskId::WORKER, v1::TaskId::EVALUATOR}) {
    for (const Member* member : job_->membership.Alive(role)) out_->SendStop(member->id, stop);
  }
  for (const auto& [id, worker] : job_->done_workers) out_->SendStop(worker, stop);
}

void JobEnd::CheckFarewell(absl::Time now) {
  if (finish_sent_) return;
  const bool somebody = !job_->done_workers.empty() ||
                        std::any_of(job_->membership.all().begin(), job_->membership.all().end(),
                                    [](const auto& entry) { return entry.second.state == v1::TaskStatus::ALIVE; });
  // A client whose model was taken is about to register. It would look for a coordinator that is gone, and not know
  // why.
  const bool may_come = !job_->placed && job_->config.model().has_manifest();
  if ((somebody || may_come) && now - ended_at_ < kFarewell) return;
  finish_sent_ = true;
  const std::string& error = job_->end.error();
  out_->Add(Finish{error.empty() ? absl::OkStatus() : absl::AbortedError(error)});
}

}  // namespace rubato::coordinator
