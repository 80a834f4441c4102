#include "client/sidecar/membership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/placement_check.h"
#include "common/session/task_session.h"
#include "common/status.h"
#include "common/task.h"
#include "worker/ps_client/not_finite.h"
#include "worker/ps_client/server_places.h"

namespace rubato::client {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(100);
// How often somebody who waits says so in the log.
constexpr absl::Duration kSayWaiting = absl::Seconds(5);

}  // namespace

absl::StatusOr<std::unique_ptr<Membership>> Membership::Create(Options options) {
  std::unique_ptr<Membership> membership(new Membership(std::move(options)));
  const Options& own = membership->options_;
  Session::Options session =
      TaskSessionOptions(*own.config, own.coordinator, own.security, own.task, own.clock, own.log);
  session.term = own.term;
  // What the client has said, not how long a whole job may take to start.
  session.give_up_after = own.timeout;
  session.registration.set_train_examples(own.config->data().client().train_examples());
  if (!own.metrics_address.empty()) session.registration.set_metrics_address(own.metrics_address);
  session.heartbeat = own.heartbeat;
  session.on_directive = [self = membership.get()](const v1::Directive& directive) { self->OnDirective(directive); };
  session.on_lost = [self = membership.get()](const absl::Status& status) { self->GiveUp(status); };
  RUBATO_ASSIGN_OR_RETURN(membership->session_, Session::Create(std::move(session)));
  return membership;
}

void Membership::Start() { session_->Start(); }

bool Membership::IsMember(const v1::Plan& plan) const {
  return std::any_of(plan.members().begin(), plan.members().end(),
                     [&](const v1::TaskId& member) { return SameTask(member, options_.task); });
}

Membership::News Membership::NewsLocked() const {
  return {.job = job_, .plan = IsMember(plan_) ? plan_ : v1::Plan(), .assigns = assigns_};
}

absl::StatusOr<Membership::News> Membership::Await(const std::function<bool(const News&)>& enough,
                                                   const std::function<bool()>& interrupted) {
  absl::Time next_log = options_.clock->Now() + kSayWaiting;
  MutexLock lock(mu_);
  for (;;) {
    RUBATO_RETURN_IF_ERROR(over_);
    News news = NewsLocked();
    if (enough(news) || interrupted()) return news;
    // The coordinator has a deadline for the start of the job and says when it has passed.
    if (const absl::Time now = options_.clock->Now(); now >= next_log) {
      options_.log->Info(absl::StrCat("waits for ", waiting_for_.empty() ? "the coordinator" : waiting_for_));
      next_log = now + kSayWaiting;
    }
    changed_.WaitFor(mu_, kPoll);
  }
}

v1::Plan Membership::plan() {
  MutexLock lock(mu_);
  return plan_;
}

bool Membership::is_over() {
  MutexLock lock(mu_);
  return !over_.ok();
}

absl::Status Membership::over() {
  MutexLock lock(mu_);
  return over_;
}

bool Membership::restarts() {
  MutexLock lock(mu_);
  return restarts_;
}

void Membership::OverLocked(absl::Status why) {
  if (over_.ok()) over_ = std::move(why);
  options_.on_over(over_);
  changed_.NotifyAll();
}

void Membership::GiveUp(absl::Status why) {
  MutexLock lock(mu_);
  OverLocked(std::move(why));
}

void Membership::OnDirective(const v1::Directive& directive) {
  MutexLock lock(mu_);
  switch (directive.body_case()) {
    case v1::Directive::kRegistered:
      waiting_for_ = directive.registered().waiting_for();
      if (over_.ok() && !leaves_) options_.health->SetServing(true);
      break;
    case v1::Directive::kJob:
      TakeJobLocked(directive.job());
      break;
    case v1::Directive::kCommit:
      plan_ = directive.commit().plan();
      break;
    case v1::Directive::kStop: {
      const absl::Status end = HeedStop(directive.stop(), *options_.config, options_.log);
      OverLocked(end.ok() ? absl::CancelledError("the job is over") : end);
      break;
    }
    case v1::Directive::kRestart: {
      const std::string why = absl::StrCat("the job goes back to a checkpoint: ", directive.restart().reason());
      if (!std::exchange(restarts_, true)) options_.log->Info(why);
      OverLocked(absl::AbortedError(why));
      break;
    }
    case v1::Directive::kShardGrant:
    case v1::Directive::kRecordTrace:
    case v1::Directive::kKeepCheckpoints:
      options_.on_work(directive);
      break;
    // For others, or the session's own.
    case v1::Directive::kEvaluate:
    case v1::Directive::kAnnounce:
    case v1::Directive::kAbort:
    case v1::Directive::kCheckpoint:
    case v1::Directive::kClock:
    case v1::Directive::BODY_NOT_SET:
      break;
  }
  changed_.NotifyAll();
}

void Membership::TakeJobLocked(const v1::JobDescription& description) {
  if (description.has_plan()) plan_ = description.plan();
  assigns_ = description.has_initial_weights_from() && SameTask(description.initial_weights_from(), options_.task);
  if (job_.has_value()) return;
  v1::JobDescription job = description;
  absl::Status good = CheckPlacements(job, *options_.spec, options_.config->cluster().partitions_per_server());
  if (good.ok()) good = worker::NameServersByPlace(&job);
  if (!good.ok()) return OverLocked(std::move(good));
  job_ = std::move(job);
}

void Membership::Leave(const absl::Status& status, bool drained, absl::Duration timeout) {
  {
    MutexLock lock(mu_);
    leaves_ = true;
    options_.health->SetServing(false);
    if (restarts_) return;
  }
  v1::Leaving leaving;
  leaving.set_error(std::string(status.message()));
  if (worker::IsNotFinite(status)) leaving.set_cause(v1::Leaving::NOT_FINITE);
  leaving.set_drained(status.ok() && drained);
  if (leaving.drained()) options_.log->Info("leaves the job, as it was asked to");
  const absl::Status left = session_->Leave(leaving, timeout);
  if (!left.ok()) options_.log->Warning(absl::StrCat("leaves without the coordinator's knowledge: ", left.message()));
}

}  // namespace rubato::client
