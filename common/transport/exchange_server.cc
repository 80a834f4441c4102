#include "common/transport/exchange_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <climits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status.h"

namespace rubato {
namespace {

absl::Status CheckListen(absl::string_view listen) {
  const size_t colon = listen.rfind(':');
  uint32_t port = 0;
  if (colon != absl::string_view::npos && colon > 0 && absl::SimpleAtoi(listen.substr(colon + 1), &port) &&
      port <= 65535) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("listen: \"", listen, "\" is not \"host:port\" with a port from 0 to 65535"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExchangeServer>> ExchangeServer::Create(Options options, Handler* handler) {
  RUBATO_RETURN_IF_ERROR(CheckListen(options.listen));
  if (options.max_message_bytes < 1 || options.max_message_bytes > INT_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_message_bytes: ", options.max_message_bytes, " is not in [1, ", INT_MAX, "]"));
  }
  std::unique_ptr<ExchangeServer> server(new ExchangeServer(std::move(options), handler));
  RUBATO_RETURN_IF_ERROR(server->Start());
  return server;
}

ExchangeServer::~ExchangeServer() { Shutdown(); }

absl::Status ExchangeServer::Start() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options_.listen, ServerCredentialsOf(options_.security.get()), &port_);
  // Two servers on one port would each get some of the clients.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options_.max_message_bytes));
  builder.SetMaxSendMessageSize(-1);
  // The bound on a message holds for what is received, not for what it would inflate to.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  ApplyKeepalive(options_.keepalive, &builder);
  // Threads of gRPC's own are for `services` and for probes; fewer of them stand in the queue's way.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 1);
  builder.RegisterService(&service_);
  for (grpc::Service* service : options_.services) builder.RegisterService(service);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port_ == 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", options_.listen,
                                               ": the port is taken by another process, or the host is not an address "
                                               "of this machine; port 0 takes a free one"));
  }
  if (options_.health != nullptr) options_.health->Attach(server_.get(), "rubato.v1.ParameterServer");
  AcceptNext();
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void ExchangeServer::AcceptNext() {
  accepting_ = std::make_shared<ServerStream>(next_id_++, options_.max_queued_bytes, handler_);
  accepting_->Accept(&service_, queue_.get());
}

void ExchangeServer::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    const auto [stream, operation] = *static_cast<ServerStream::Tag*>(tag);
    if (operation == ServerStream::Operation::kAccept) {
      OnAccepted(std::exchange(accepting_, nullptr), ok);
    } else if (stream->OnEvent(operation, ok)) {
      Forget(stream->id());
    }
  }
}

void ExchangeServer::OnAccepted(std::shared_ptr<ServerStream> stream, bool ok) {
  if (ok) stream->Begin();
  bool closing = false;
  {
    MutexLock lock(mu_);
    if (ok) streams_[stream->id()] = stream;
    closing = shutting_down_;
    if (!ok || closing) is_accepting_ = false;
    changed_.NotifyAll();
  }
  if (ok && closing) stream->Close(absl::UnavailableError("the server is shutting down"));
  if (ok && !closing) AcceptNext();
}

void ExchangeServer::Forget(uint64_t id) {
  std::shared_ptr<ServerStream> stream;  // Its memory is released without the lock.
  MutexLock lock(mu_);
  stream = std::move(streams_[id]);
  streams_.erase(id);
  changed_.NotifyAll();
}

void ExchangeServer::Shutdown() {
  std::vector<std::shared_ptr<ServerStream>> streams;
  {
    MutexLock lock(mu_);
    if (shutting_down_) return;
    shutting_down_ = true;
    for (const auto& [id, stream] : streams_) streams.push_back(stream);
  }
  if (!thread_.joinable()) return;
  if (options_.health != nullptr) options_.health->Detach();
  for (const auto& stream : streams) stream->Close(absl::UnavailableError("the server is shutting down"));
  streams.clear();
  server_->Shutdown(gpr_time_from_millis(absl::ToInt64Milliseconds(options_.shutdown_grace), GPR_TIMESPAN));
  {
    // Once all calls are over nobody starts an operation on the queue any more.
    MutexLock lock(mu_);
    while (is_accepting_ || !streams_.empty()) changed_.Wait(mu_);
  }
  queue_->Shutdown();
  thread_.join();
}

}  // namespace rubato
