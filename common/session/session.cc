#include "common/session/session.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/task.h"

namespace rubato {
namespace {

constexpr size_t kQueueMax = 4096;
constexpr absl::Duration kRetryMin = absl::Milliseconds(100);
constexpr absl::Duration kRetryMax = absl::Seconds(1);
constexpr absl::Duration kHeartbeatMax = absl::Milliseconds(500);
constexpr absl::Duration kGoodbye = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Create(Options options) {
  const size_t colon = options.coordinator.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == options.coordinator.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("coordinator: \"", options.coordinator, "\"; allowed: host:port"));
  }
  if (!options.heartbeat || !options.on_directive || !options.on_lost || options.clock == nullptr ||
      options.log == nullptr) {
    return absl::InvalidArgumentError("session: a callback, the clock or the log is missing");
  }
  return std::unique_ptr<Session>(new Session(std::move(options)));
}

Session::Session(Options options) : options_(std::move(options)), contact_at_(options_.clock->Now()) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  // The waits between tries are ours.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  stub_ = v1::Coordinator::NewStub(
      grpc::CreateCustomChannel(options_.coordinator, grpc::InsecureChannelCredentials(), arguments));
}

void Session::Start() {
  reader_ = std::thread([this] { ReadLoop(); });
  writer_ = std::thread([this] { WriteLoop(); });
}

Session::~Session() {
  {
    MutexLock lock(mu_);
    stop_ = true;
    if (call_ != nullptr) call_->context.TryCancel();
  }
  changed_.NotifyAll();
  if (reader_.joinable()) reader_.join();
  if (writer_.joinable()) writer_.join();
}

bool Session::stopping() {
  MutexLock lock(mu_);
  return stop_;
}

void Session::ReadLoop() {
  absl::Duration retry = kRetryMin;
  bool told = false;
  while (!stopping()) {
    const absl::Time begin = options_.clock->Now();
    absl::Status why = ReadOneStream();
    MutexLock lock(mu_);
    if (stop_) return;
    const absl::Time now = options_.clock->Now();
    if (contact_at_ > begin) {
      retry = kRetryMin;
      told = false;
    }
    if (now - contact_at_ > options_.give_up_after) {
      stop_ = true;
      absl::Status lost = absl::UnavailableError(
          absl::StrCat("the coordinator at ", options_.coordinator, " cannot be reached since ",
                       absl::FormatDuration(absl::Trunc(now - contact_at_, absl::Milliseconds(100))), ": ",
                       why.message()));
      changed_.NotifyAll();
      mu_.Unlock();
      options_.on_lost(std::move(lost));
      mu_.Lock();
      return;
    }
    if (!told) {
      told = true;
      options_.log->Warning(absl::StrCat("no session with the coordinator at ", options_.coordinator, ": ",
                                         why.message(), "; trying again"));
    }
    changed_.WaitFor(mu_, retry);
    retry = std::min(retry * 2, kRetryMax);
  }
}

absl::Status Session::ReadOneStream() {
  auto call = std::make_shared<Call>();
  call->context.set_wait_for_ready(false);
  call->stream = stub_->Session(&call->context);
  v1::TaskMessage hello;
  *hello.mutable_task() = options_.task;
  *hello.mutable_register_() = options_.registration;
  if (call->stream->Write(hello)) {
    {
      MutexLock lock(mu_);
      if (stop_) call->context.TryCancel();
      queue_.clear();
      call_ = call;
    }
    changed_.NotifyAll();
    v1::Directive directive;
    while (call->stream->Read(&directive)) OnDirective(directive);
    call->context.TryCancel();
    MutexLock lock(mu_);
    call_ = nullptr;
    changed_.NotifyAll();
    // A write that is under way ends with the stream; gRPC wants it over before Finish.
    while (writing_) changed_.WaitFor(mu_, absl::Milliseconds(100));
  }
  absl::Status status = FromGrpcStatus(call->stream->Finish());
  return status.ok() ? absl::UnavailableError("the coordinator closed the stream") : status;
}

void Session::OnDirective(const v1::Directive& directive) {
  {
    MutexLock lock(mu_);
    contact_at_ = options_.clock->Now();
    if (directive.has_registered() && directive.registered().lease_seconds() > 0) {
      heartbeat_interval_ = std::min(kHeartbeatMax, absl::Seconds(directive.registered().lease_seconds()) / 4);
    }
    if (stop_) return;
  }
  options_.on_directive(directive);
}

void Session::Send(v1::TaskMessage message) {
  *message.mutable_task() = options_.task;
  {
    MutexLock lock(mu_);
    if (call_ == nullptr || queue_.size() >= kQueueMax) return;
    queue_.push_back(std::move(message));
  }
  changed_.NotifyAll();
}

void Session::WriteLoop() {
  absl::Time next_heartbeat = absl::InfinitePast();
  for (;;) {
    v1::TaskMessage message;
    std::shared_ptr<Call> call;
    bool heartbeat = false;
    {
      MutexLock lock(mu_);
      for (;;) {
        if (stop_) return;
        const absl::Time now = options_.clock->Now();
        heartbeat = now >= next_heartbeat;
        if (call_ != nullptr && (heartbeat || !queue_.empty())) break;
        // A heartbeat that is due waits for the stream, which notifies when it is there.
        changed_.WaitFor(mu_, heartbeat ? heartbeat_interval_ : next_heartbeat - now);
      }
      call = call_;
      writing_ = true;
      if (!queue_.empty()) {
        message = std::move(queue_.front());
        queue_.pop_front();
        heartbeat = false;
      } else {
        next_heartbeat = options_.clock->Now() + heartbeat_interval_;
      }
    }
    if (heartbeat) {
      *message.mutable_task() = options_.task;
      *message.mutable_heartbeat() = options_.heartbeat();
    }
    const bool sent = call->stream->Write(message);
    MutexLock lock(mu_);
    writing_ = false;
    if (!sent) {
      call->context.TryCancel();  // The reader starts another one.
      if (call_ == call) call_ = nullptr;
    }
    if (message.has_leaving()) left_ = true;
    changed_.NotifyAll();
  }
}

void Session::Leave(const std::string& error) {
  v1::TaskMessage message;
  message.mutable_leaving()->set_error(error);
  Send(std::move(message));
  const absl::Time deadline = options_.clock->Now() + kGoodbye;
  MutexLock lock(mu_);
  while (!left_ && !stop_ && call_ != nullptr && options_.clock->Now() < deadline) {
    changed_.WaitFor(mu_, absl::Milliseconds(50));
  }
  // Let the coordinator end the stream, so that the goodbye is not cut off by a reset.
  while (left_ && !stop_ && call_ != nullptr && options_.clock->Now() < deadline) {
    changed_.WaitFor(mu_, absl::Milliseconds(50));
  }
  stop_ = true;
  if (call_ != nullptr) call_->context.TryCancel();
  changed_.NotifyAll();
}

}  // namespace rubato
