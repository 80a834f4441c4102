#include "common/transport/exchange_client.h"

#include <grpc/support/time.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/status.h"
#include "common/transport/loopback.h"
#include "common/wire/bundle.h"

namespace rubato {
namespace {

constexpr char kMethod[] = "/rubato.v1.ParameterServer/Exchange";

// That a read is put off at most when no answer is awaited. So the end of a quiet stream is heard of this much later.
constexpr int64_t kReadDelayMaxMs = 50;

std::shared_ptr<grpc::Channel> MakeChannel(const ExchangeClient::Options& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  arguments.SetMaxSendMessageSize(-1);
  // A connection of its own, which knows nothing of another client's failures to reach the same server.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Nothing outside the options decides where messages go: no proxy from the environment, no service config from DNS.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // Messages that were lost with a stream are sent again by its owner, who knows which.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  ApplyKeepalive(options.keepalive, &arguments);
  TuneLoopbackChannel(options.address, &arguments);
  return OpenChannel(options.address, Party::kServer, options.server, options.security.get(), arguments);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExchangeClient>> ExchangeClient::Create(Options options, Handler* handler) {
  if (options.address.empty()) return absl::InvalidArgumentError("address: is empty, expected \"host:port\"");
  if (options.connect_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("connect_timeout: ", absl::FormatDuration(options.connect_timeout), " is not above 0"));
  }
  if (options.max_message_bytes < 1 || options.max_message_bytes > INT_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_message_bytes: ", options.max_message_bytes, " is not in [1, ", INT_MAX, "]"));
  }
  std::unique_ptr<ExchangeClient> client(new ExchangeClient(std::move(options), handler));
  RUBATO_RETURN_IF_ERROR(client->Connect());
  return client;
}

ExchangeClient::ExchangeClient(Options options, Handler* handler)
    : options_(std::move(options)), handler_(handler), out_(options_.max_queued_bytes) {}

ExchangeClient::~ExchangeClient() { Shutdown(); }

absl::Status ExchangeClient::Connect() {
  stub_ = std::make_unique<grpc::GenericStub>(MakeChannel(options_));
  {
    MutexLock lock(mu_);
    pending_ = 1;
  }
  context_.AddMetadata(kTakesBundles, "1");
  stream_ = stub_->PrepareCall(&context_, kMethod, poller_->queue());
  stream_->StartCall(start_event_.tag());

  absl::Status status;
  {
    MutexLock lock(mu_);
    while (state_ == State::kConnecting && changed_.WaitFor(mu_, options_.connect_timeout)) {
    }
    if (state_ == State::kConnecting) {
      status = absl::DeadlineExceededError(absl::StrCat("no connection to ", options_.address, " within ",
                                                        absl::FormatDuration(options_.connect_timeout)));
    } else if (!was_open_) {
      while (state_ != State::kEnded) changed_.Wait(mu_);
      status = Annotate(status_, absl::StrCat("no connection to ", options_.address));
    }
  }
  if (!status.ok()) Shutdown();
  return status;
}

void ExchangeClient::OnEvent(Operation operation, bool ok) {
  if (operation == Operation::kStart && ok) {
    peer_ = context_.peer();
    TuneLoopbackSockets(peer_);
    {
      MutexLock lock(mu_);
      if (state_ == State::kConnecting) state_ = State::kOpen;
      was_open_ = true;
      changed_.NotifyAll();
    }
    BeginRead();
  } else if (operation == Operation::kRead && ok) {
    OnRead();
  } else if (operation == Operation::kWrite) {
    {
      MutexLock lock(mu_);
      out_.WriteDone();
    }
    // A write that failed is followed by a read that fails.
    if (ok) Advance();
  } else if (operation == Operation::kReadTimer) {
    bool due = false;
    {
      MutexLock lock(mu_);
      read_timer_set_ = false;
      due = std::exchange(read_due_, false);
    }
    if (due) BeginRead();
  } else if (!ok) {
    Finish();
  }
  bool last = false;
  {
    MutexLock lock(mu_);
    last = --pending_ == 0;
  }
  if (last) OnEnd();
}

void ExchangeClient::BeginRead() {
  {
    MutexLock lock(mu_);
    ++pending_;
  }
  stream_->Read(&incoming_, read_event_.tag());
}

void ExchangeClient::OnRead() {
  // It came with the first message at the latest.
  if (!std::exchange(server_is_known_, true) && context_.GetServerInitialMetadata().contains(kTakesBundles)) {
    MutexLock lock(mu_);
    out_.AllowBundles();
  }
  std::vector<grpc::ByteBuffer> messages(1);
  messages.front().Swap(&incoming_);
  if (IsBundle(&messages.front())) {
    absl::StatusOr<std::vector<grpc::ByteBuffer>> bundle = Unbundle(messages.front());
    if (!bundle.ok()) Break(Annotate(bundle.status(), absl::StrCat("from the server at ", options_.address)));
    messages = bundle.ok() ? *std::move(bundle) : std::vector<grpc::ByteBuffer>();
  }
  bool read_now = false, deliver = false;
  {
    MutexLock lock(mu_);
    unanswered_ -= std::min(messages.size(), unanswered_);
    read_now = unanswered_ > 0 || state_ != State::kOpen;
    if (!read_now) PutOffRead();
    deliver = !messages.empty() && !shutting_down_;
  }
  // Before the handler (docs/decisions/0036). The next event is handled after it all the same, by this thread.
  if (read_now) BeginRead();
  if (deliver) Deliver(std::move(messages));
}

void ExchangeClient::PutOffRead() {
  read_due_ = true;
  if (std::exchange(read_timer_set_, true)) return;
  ++pending_;
  // From now on, by a clock that nobody sets.
  read_timer_.Set(poller_->queue(), gpr_time_from_millis(kReadDelayMaxMs, GPR_TIMESPAN), read_timer_event_.tag());
}

void ExchangeClient::Deliver(std::vector<grpc::ByteBuffer> messages) {
  if (messages.size() == 1) return handler_->OnMessages(std::move(messages));
  // What is sent in answer waits for the rest, and travels together as well.
  {
    MutexLock lock(mu_);
    out_.set_held(true);
  }
  handler_->OnMessages(std::move(messages));
  {
    MutexLock lock(mu_);
    out_.set_held(false);
  }
  Advance();
}

void ExchangeClient::Finish() {
  if (std::exchange(finishing_, true)) return;
  {
    MutexLock lock(mu_);
    state_ = State::kEnding;
    read_timer_.Cancel();
    ++pending_;
  }
  stream_->Finish(&finish_status_, finish_event_.tag());
}

void ExchangeClient::OnEnd() {
  absl::Status ended = FromGrpcStatus(finish_status_);
  if (ended.ok()) ended = absl::UnavailableError("the server ended the stream");
  absl::Status told;
  {
    SendQueue::Messages dropped;  // Released without the lock.
    MutexLock lock(mu_);
    // Nothing of it stays here: others may be the last to release it.
    if (status_.ok()) status_ = std::move(ended);
    dropped = out_.TakeAll();
    if (was_open_ && !shutting_down_) told = status_;
  }
  if (!told.ok()) handler_->OnDisconnected(std::move(told));
  // Whoever waits for this may destroy the client as soon as the lock is given back.
  MutexLock lock(mu_);
  state_ = State::kEnded;
  changed_.NotifyAll();
}

void ExchangeClient::Send(grpc::ByteBuffer&& message, int64_t priority) {
  Queue(std::move(message), priority);
  Flush();
}

void ExchangeClient::Queue(grpc::ByteBuffer&& message, int64_t priority) {
  const size_t bytes = message.Length();
  bool taken = false, full = false;
  {
    MutexLock lock(mu_);
    if (state_ != State::kOpen) return;
    taken = out_.Push(std::move(message), priority);
    if (taken) ++unanswered_;
    full = out_.fills_bundle();
  }
  if (taken) return full ? Advance() : void();
  Break(absl::ResourceExhaustedError(absl::StrCat("the server at ", options_.address,
                                                  " does not read: another message of ", bytes,
                                                  " bytes does not fit the queue")));
}

void ExchangeClient::Advance() {
  grpc::ByteBuffer message;
  grpc::WriteOptions options;
  bool read = false, ahead_changes = false;
  SendAhead ahead = SendAhead::kMessage;
  {
    MutexLock lock(mu_);
    if (state_ != State::kOpen || out_.StartNext(&message) == 0) return;
    // Small messages that wait for each other go to the socket together.
    if (!out_.empty()) options.set_buffer_hint();
    ++pending_;
    read = std::exchange(read_due_, false);
    if (read) ++pending_;
    // A message that is sent by itself is to be off the sender's hands. Of many the last comes no earlier for that.
    ahead = out_.many_wait() ? SendAhead::kLittle : SendAhead::kMessage;
    ahead_changes = std::exchange(send_ahead_, ahead) != ahead;
  }
  if (ahead_changes) SetLoopbackSendAhead(peer_, ahead);
  // Not under the lock, because gRPC writes to the socket here; the pending events keep the stream.
  stream_->Write(message, options, write_event_.tag());
  if (read) stream_->Read(&incoming_, read_event_.tag());
}

bool ExchangeClient::connected() {
  MutexLock lock(mu_);
  return state_ == State::kOpen;
}

void ExchangeClient::Break(absl::Status status) {
  {
    MutexLock lock(mu_);
    if (state_ == State::kOpen) state_ = State::kEnding;
    if (status_.ok()) status_ = std::move(status);
    read_timer_.Cancel();
  }
  context_.TryCancel();
}

void ExchangeClient::Shutdown() {
  {
    MutexLock lock(mu_);
    if (shutting_down_) return;
    shutting_down_ = true;
  }
  if (stream_ == nullptr) return;
  Break(absl::CancelledError("the client was shut down"));
  MutexLock lock(mu_);
  while (state_ != State::kEnded) changed_.Wait(mu_);
}

}  // namespace rubato
