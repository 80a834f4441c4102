#include "common/transport/exchange_server.h"

#include <grpcpp/server_builder.h>

#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato {
absl::StatusOr<std::unique_ptr<ExchangeServer>> ExchangeServer::Create(Options options, Handler* handler) {
  const size_t message_bytes = options.limits.message_bytes;
  if (message_bytes < 1 || message_bytes > INT_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("limits.message_bytes: ", message_bytes, " is not in [1, ", INT_MAX, "]"));
  }
  std::unique_ptr<ExchangeServer> server(new ExchangeServer(std::move(options), handler));
  RUBATO_RETURN_IF_ERROR(server->Start());
  return server;
}

ExchangeServer::ExchangeServer(Options options, Handler* handler)
    : options_(std::move(options)),
      handler_(handler),
      counts_({.what = "streams",
               .per_task = options_.limits.streams_per_task,
               .per_host = options_.limits.streams_per_host}) {}

ExchangeServer::~ExchangeServer() { Shutdown(); }

absl::Status ExchangeServer::Start() {
  grpc::ServerBuilder builder;
  builder.SetMaxSendMessageSize(-1);
  ApplyKeepalive(options_.keepalive, &builder);
  // Threads of gRPC's own are for `services` and for probes; fewer of them stand in the queue's way.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 1);
  builder.RegisterService(&service_);
  if (options_.health != nullptr) {
    health_service_ = std::make_unique<HealthService>(options_.health, "rubato.v1.ParameterServer");
    builder.RegisterService(health_service_.get());
  }
  for (grpc::Service* service : options_.services) builder.RegisterService(service);
  std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  queue_ = queue.get();
  RUBATO_ASSIGN_OR_RETURN(server_, GuardedServer::Start({.listen = options_.listen,
                                                         .credentials = ServerCredentialsOf(options_.security.get()),
                                                         .limits = options_.limits,
                                                         .refusals = options_.refusals},
                                                        &builder));
  port_ = server_->port();
  AcceptNext();
  poller_ = std::make_unique<Poller>(std::move(queue));
  return absl::OkStatus();
}

void ExchangeServer::AcceptNext() {
  ServerStream::Owner* const owner = this;  // What others cannot see that it is.
  accepting_ = std::make_shared<ServerStream>(next_id_++, options_.limits, options_.refusals, owner, handler_);
  accepting_->Accept(&service_, queue_);
}

void ExchangeServer::OnStreamEvent(ServerStream* stream, ServerStream::Operation operation, bool ok) {
  if (operation == ServerStream::Operation::kAccept) {
    OnAccepted(std::exchange(accepting_, nullptr), ok);
  } else if (stream->OnEvent(operation, ok)) {
    Forget(stream->id());
  }
}

PeerCounts::Place ExchangeServer::Begin(const std::shared_ptr<ServerStream>& stream) {
  stream->Begin();
  absl::StatusOr<PeerCounts::Place> place = counts_.Take(stream->identity(), stream->peer());
  if (place.ok()) return *std::move(place);
  stream->Refuse("streams", place.status());
  return nullptr;
}

void ExchangeServer::OnAccepted(std::shared_ptr<ServerStream> stream, bool ok) {
  PeerCounts::Place place;
  if (ok) place = Begin(stream);
  bool closing = false;
  {
    MutexLock lock(mu_);
    if (ok) streams_[stream->id()] = {stream, std::move(place)};
    closing = shutting_down_;
    if (!ok || closing) is_accepting_ = false;
    changed_.NotifyAll();
  }
  if (ok && closing) stream->Close(absl::UnavailableError("the server is shutting down"));
  if (ok && !closing) AcceptNext();
}

void ExchangeServer::Forget(uint64_t id) {
  Open open;  // What it has is released without the lock.
  MutexLock lock(mu_);
  open = std::move(streams_[id]);
  streams_.erase(id);
  changed_.NotifyAll();
}

void ExchangeServer::Shutdown() {
  std::vector<std::shared_ptr<ServerStream>> streams;
  {
    MutexLock lock(mu_);
    if (shutting_down_) return;
    shutting_down_ = true;
    for (const auto& [id, open] : streams_) streams.push_back(open.stream);
  }
  if (poller_ == nullptr) return;
  if (health_service_ != nullptr) health_service_->Drain();
  for (const auto& stream : streams) stream->Close(absl::UnavailableError("the server is shutting down"));
  streams.clear();
  server_->Shutdown(gpr_time_from_millis(absl::ToInt64Milliseconds(options_.shutdown_grace), GPR_TIMESPAN));
  {
    // Once all calls are over nobody starts an operation on the queue any more.
    MutexLock lock(mu_);
    while (is_accepting_ || !streams_.empty()) changed_.Wait(mu_);
  }
}

}  // namespace rubato
