#include "common/session/session.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/process_memory.h"
#include "common/session/coordinator_channel.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato {
namespace {

// Progress stays fresh even if leases are long.
constexpr absl::Duration kSlowestHeartbeat = absl::Milliseconds(500);

// Whether the coordinator has said that the task is not who it says it is, or not of its job: so it will stay.
bool IsRefusal(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Create(Options options) {
  auto missing = [](absl::string_view option) {
    return absl::InvalidArgumentError(absl::StrCat("Session::Options::", option, " is missing"));
  };
  if (options.coordinator.empty()) return missing("coordinator");
  if (options.task.incarnation() == 0) return missing("task.incarnation");
  if (!options.heartbeat) return missing("heartbeat");
  if (!options.on_directive) return missing("on_directive");
  if (!options.on_lost) return missing("on_lost");
  if (options.clock == nullptr || options.log == nullptr) return missing("clock or log");
  return absl::WrapUnique(new Session(std::move(options)));
}

Session::Session(Options options)
    : options_(std::move(options)),
      shared_poller_(options_.poller == nullptr ? Poller::Shared() : nullptr),
      stub_(v1::Coordinator::NewStub(OpenCoordinatorChannel(options_.coordinator, options_.security.get()))),
      term_(options_.term),
      retry_pause_(options_.retry_min) {}

Session::~Session() {
  {
    MutexLock lock(mu_);
    quit_ = true;
    signalled_ = true;
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Session::Start() {
  out_of_contact_since_ = retry_at_ = heartbeat_at_ = options_.clock->Now();
  thread_ = std::thread([this] { Run(); });
}

std::optional<ClockOffset::Estimate> Session::clock_offset() {
  MutexLock lock(mu_);
  return clock_offset_.best();
}

void Session::Send(v1::TaskMessage message) {
  bool full = false;
  {
    MutexLock lock(mu_);
    if (farewell_ != Farewell::kNone || over_) return;
    full = queue_.size() >= kMaxQueued;
    if (!full) queue_.push_back(std::move(message));
  }
  if (full) options_.log->Warning("too many messages wait for the coordinator; one is dropped");
  Notify();
}

void Session::Beat() {
  v1::TaskMessage message;
  message.mutable_heartbeat();  // It is made when its turn comes.
  Send(std::move(message));
}

void Session::RegisterDone(const v1::WorkerProgress& done) {
  Beat();
  MutexLock lock(mu_);
  done_ = done;
  signalled_ = true;
  wake_.NotifyAll();
}

absl::Status Session::Leave(const std::string& error, absl::Duration timeout) {
  v1::Leaving leaving;
  leaving.set_error(error);
  return Leave(leaving, timeout);
}

absl::Status Session::Leave(const v1::Leaving& leaving, absl::Duration timeout) {
  const absl::Time deadline = options_.clock->Now() + timeout;
  MutexLock lock(mu_);
  if (farewell_ == Farewell::kNone) {
    leaving_ = leaving;
    farewell_ = Farewell::kQueued;
  }
  signalled_ = true;
  wake_.NotifyAll();
  while (!over_) {
    const absl::Duration left = deadline - options_.clock->Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("the coordinator at ", options_.coordinator,
                                                      " could not be told that ", TaskName(options_.task), " leaves"));
    }
    left_cv_.WaitFor(mu_, left);
  }
  if (lost_)
    return absl::UnavailableError(absl::StrCat("the coordinator at ", options_.coordinator, " is out of reach"));
  return absl::OkStatus();
}

void Session::Notify() {
  MutexLock lock(mu_);
  signalled_ = true;
  wake_.NotifyAll();
}

void Session::Run() {
  absl::Duration sleep = absl::ZeroDuration();
  while (true) {
    {
      MutexLock lock(mu_);
      // A spurious wake-up costs one idle round.
      if (!signalled_ && !quit_ && sleep > absl::ZeroDuration()) wake_.WaitFor(mu_, sleep);
      signalled_ = false;
      if (quit_) break;
    }
    sleep = Step(options_.clock->Now());
  }
  if (stream_ == nullptr) return;
  stream_->Cancel();
  while (!stream_->done()) {
    MutexLock lock(mu_);
    if (!signalled_) wake_.WaitFor(mu_, absl::Milliseconds(100));
    signalled_ = false;
  }
}

absl::Duration Session::Step(absl::Time now) {
  if (dead_) return kSlowestHeartbeat;
  if (stream_ == nullptr && now >= retry_at_) Open(now);
  if (stream_ != nullptr) {
    for (const v1::Directive& directive : stream_->TakeDirectives()) Receive(directive);
    if (std::optional<absl::Status> status = stream_->done()) {
      // What came last may have arrived since.
      for (const v1::Directive& directive : stream_->TakeDirectives()) Receive(directive);
      OnBroken(*status, now);
    } else if (!dead_) {
      WriteNext(now);
    }
  }
  const absl::Duration timeout =
      was_registered_ ? std::max(options_.give_up_after, options_.give_up_after_registered) : options_.give_up_after;
  if (!registered_ && !dead_ && now - out_of_contact_since_ >= timeout) GiveUp(now);
  // Of all that changes for the stream it is told.
  if (dead_ || (stream_ != nullptr && !stream_->can_write())) return kSlowestHeartbeat;
  const absl::Time next = stream_ == nullptr ? retry_at_ : heartbeat_at_;
  return std::clamp(next - now, absl::Milliseconds(1), kSlowestHeartbeat);
}

void Session::Open(absl::Time now) {
  introduced_ = false;
  greeted_ = false;
  last_heartbeat_sent_ = false;
  heartbeat_at_ = now;
  Poller* const poller = options_.poller == nullptr ? shared_poller_.get() : options_.poller;
  stream_ = std::make_unique<SessionStream>(stub_.get(), poller, [this] { Notify(); });
}

void Session::OnBroken(const absl::Status& status, absl::Time now) {
  stream_.reset();
  {
    MutexLock lock(mu_);
    // The coordinator ends the stream when it has read and handled all that came on it. A job that has stopped has no
    // coordinator to come back to.
    if (stopped_ || (farewell_ == Farewell::kSent && status.ok())) return End();
    if (farewell_ == Farewell::kSent) farewell_ = Farewell::kQueued;
  }
  last_error_ = status.ok() ? absl::UnavailableError("the coordinator closed the stream") : status;
  if (std::exchange(registered_, false)) {
    out_of_contact_since_ = now;
    options_.log->Warning(
        absl::StrCat("lost the connection to the coordinator at ", options_.coordinator, ": ", last_error_.message()));
    retry_pause_ = options_.retry_min;
  }
  // A coordinator that has let it in before is another one now, and its own may come back.
  if (!was_registered_ && IsRefusal(last_error_)) return GiveUp(now);
  retry_at_ = now + retry_pause_;
  retry_pause_ = std::min(2 * retry_pause_, options_.retry_max);
}

void Session::End() {
  dead_ = true;
  over_ = true;
  left_cv_.NotifyAll();
}

bool Session::IsOutdated(const v1::Directive& directive) {
  if (directive.term() == 0 || directive.term() >= term_) {
    term_ = std::max(term_.load(), directive.term());
    return false;
  }
  if (std::exchange(outdated_term_, directive.term()) != directive.term()) {
    options_.log->Warning(absl::StrCat("a coordinator of term ", directive.term(), " speaks; this task knows of term ",
                                       term_.load(), " and takes no notice"));
  }
  return true;
}

void Session::Receive(const v1::Directive& directive) {
  if (IsOutdated(directive)) {
    // The one that has taken its place may be at the same address.
    if (stream_ != nullptr) stream_->Cancel();
    return;
  }
  if (directive.has_clock()) {
    const absl::Time received = options_.clock->Now();
    MutexLock lock(mu_);
    return clock_offset_.Add(absl::FromUnixNanos(directive.clock().sent_unix_nanos()), received,
                             absl::FromUnixNanos(directive.clock().coordinator_unix_nanos()));
  }
  if (directive.has_registered()) {
    registered_ = was_registered_ = true;
    retry_pause_ = options_.retry_min;
    const double lease = directive.registered().lease_seconds();
    if (lease > 0) heartbeat_interval_ = std::min(absl::Seconds(lease) / 4, kSlowestHeartbeat);
  }
  if (directive.has_stop()) {
    stopped_ = true;
    // A task that is refused is answered with Stop alone, and may say goodbye all the same.
    registered_ = true;
  }
  options_.on_directive(directive);
  if (!directive.has_restart()) return;
  MutexLock lock(mu_);
  if (farewell_ != Farewell::kNone) End();
}

bool Session::Write(v1::TaskMessage message) {
  *message.mutable_task() = options_.task;
  message.set_term(term_);
  return stream_->Write(message);
}

void Session::WriteNext(absl::Time now) {
  if (!stream_->can_write()) return;
  if (!introduced_) return WriteRegister();
  v1::TaskMessage message;
  // What is queued waits for Registered, so that a stream that never came about takes nothing with it.
  if (greeted_ && registered_ && NextQueued(&message)) {
    const bool leaving = message.has_leaving();
    if (!Write(std::move(message)) || !leaving) return;
    MutexLock lock(mu_);
    farewell_ = Farewell::kSent;
    return;
  }
  if (greeted_ && registered_ && DoneSince()) return WriteRegister();
  bool sent = false;
  {
    MutexLock lock(mu_);
    sent = farewell_ == Farewell::kSent;
  }
  if (sent) return stream_->CloseWrites();
  if (greeted_ && now < heartbeat_at_) return;
  heartbeat_at_ = now + heartbeat_interval_;
  greeted_ |= Write(HeartbeatMessage());
}

void Session::WriteRegister() {
  v1::TaskMessage message;
  *message.mutable_register_() = options_.registration;
  {
    MutexLock lock(mu_);
    if (done_.has_value()) *message.mutable_register_()->mutable_done() = *done_;
  }
  const bool done = message.register_().has_done();
  if (!Write(std::move(message))) return;
  introduced_ = true;
  introduced_done_ = done;
}

bool Session::DoneSince() {
  MutexLock lock(mu_);
  return done_.has_value() && !introduced_done_ && farewell_ != Farewell::kSent;
}

bool Session::NextQueued(v1::TaskMessage* message) {
  {
    MutexLock lock(mu_);
    if (!queue_.empty()) {
      *message = std::move(queue_.front());
      queue_.pop_front();
    } else if (farewell_ != Farewell::kQueued) {
      return false;
    } else if (last_heartbeat_sent_) {
      *message->mutable_leaving() = leaving_;
    } else {
      // It goes before Leaving, so that the final counts are known.
      last_heartbeat_sent_ = true;
      message->mutable_heartbeat();
    }
  }
  if (message->has_heartbeat()) *message = HeartbeatMessage();
  return true;
}

v1::TaskMessage Session::HeartbeatMessage() {
  v1::TaskMessage message;
  v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
  heartbeat = options_.heartbeat();
  heartbeat.set_resident_bytes(ResidentBytes());
  heartbeat.set_last_problem(options_.log->last_problem());
  heartbeat.set_sent_unix_nanos(absl::ToUnixNanos(options_.clock->Now()));
  return message;
}

void Session::GiveUp(absl::Time now) {
  dead_ = true;
  if (stream_ != nullptr) stream_->Cancel();
  {
    MutexLock lock(mu_);
    over_ = true;
    lost_ = true;
    left_cv_.NotifyAll();
  }
  if (IsRefusal(last_error_)) {
    return options_.on_lost(
        Annotate(last_error_, absl::StrCat("the coordinator at ", options_.coordinator, " does not take this task for ",
                                           TaskName(options_.task))));
  }
  options_.on_lost(absl::UnavailableError(
      absl::StrCat("the coordinator at ", options_.coordinator, " could not be reached for ",
                   absl::FormatDuration(absl::Trunc(now - out_of_contact_since_, absl::Milliseconds(100))),
                   last_error_.ok() ? "" : absl::StrCat("; last error: ", last_error_.message()))));
}

}  // namespace rubato
