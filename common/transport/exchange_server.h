#ifndef RUBATO_COMMON_TRANSPORT_EXCHANGE_SERVER_H_
#define RUBATO_COMMON_TRANSPORT_EXCHANGE_SERVER_H_

#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/health/health.h"
#include "common/health/health_service.h"
#include "common/limits/guarded_server.h"
#include "common/limits/peer_counts.h"
#include "common/limits/port_limits.h"
#include "common/limits/refusal_log.h"
#include "common/mutex.h"
#include "common/security/task_security.h"
#include "common/transport/connection.h"
#include "common/transport/keepalive.h"
#include "common/transport/poller.h"
#include "common/transport/server_stream.h"

namespace rubato {

// Serves rubato.v1.ParameterServer/Exchange with messages as raw bytes: a poller moves them between gRPC and a handler.
// Other methods are answered UNIMPLEMENTED. Thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(auto server, ExchangeServer::Create({.listen = "0.0.0.0:0"}, &handler));
//   Register(server->port());
class ExchangeServer : private ServerStream::Owner {
 public:
  using Handler = ConnectionHandler;

  struct Options {
    // "host:port"; port 0 takes a free one. Not shared with another process.
    std::string listen = {};
    // Who may call. Null: everybody.
    std::shared_ptr<const TaskSecurity> security = nullptr;
    // Of everybody's messages and streams; what one peer asks for beyond them is refused with RESOURCE_EXHAUSTED.
    PortLimits limits = {.message_bytes = (size_t{1} << 28) + (size_t{1} << 20), .memory_bytes = size_t{1} << 32};
    // Says who is refused. Null: nothing does. Outlives the server.
    RefusalLog* refusals = nullptr;
    Keepalive keepalive = {};
    // How long Shutdown waits for calls of `services` before it cancels them.
    absl::Duration shutdown_grace = absl::Seconds(1);
    // Served on the same port by gRPC's own threads. Not owned; they outlive the server.
    std::vector<grpc::Service*> services = {};
    // What the port's health service says. Null: it has none. Outlives the server.
    const Health* health = nullptr;
  };

  // Listens when it returns. `handler` outlives the server. InvalidArgument: an option is out of range. Unavailable:
  // the port is taken, or the address is not one of this host's.
  static absl::StatusOr<std::unique_ptr<ExchangeServer>> Create(Options options, Handler* handler);

  // As Shutdown; and nobody uses the poller any more.
  ~ExchangeServer() override;

  // The port that it listens on.
  int port() const { return port_; }

  // For calls that this process makes itself.
  Poller* poller() { return poller_.get(); }

  // Ends all connections with UNAVAILABLE and stops. No handler call is running or comes after it has returned. Not to
  // be called from the handler. Further calls do nothing.
  void Shutdown();

 private:
  struct Open {
    std::shared_ptr<ServerStream> stream;
    PeerCounts::Place place;
  };

  ExchangeServer(Options options, Handler* handler);

  absl::Status Start();
  void AcceptNext();
  void OnStreamEvent(ServerStream* stream, ServerStream::Operation operation, bool ok) override;
  void OnAccepted(std::shared_ptr<ServerStream> stream, bool ok);
  // Begins to read, or refuses the peer another stream.
  PeerCounts::Place Begin(const std::shared_ptr<ServerStream>& stream);
  void Forget(uint64_t id);

  const Options options_;
  Handler* const handler_;
  RawExchangeService service_;
  std::unique_ptr<HealthService> health_service_;
  std::unique_ptr<GuardedServer> server_;
  PeerCounts counts_;
  int port_ = 0;
  // Used by Start, then by the poller's thread alone.
  uint64_t next_id_ = 1;
  std::shared_ptr<ServerStream> accepting_;
  grpc::ServerCompletionQueue* queue_ = nullptr;

  Mutex mu_;
  CondVar changed_;
  bool shutting_down_ ABSL_GUARDED_BY(mu_) = false;
  // Whether a stream waits for the next call.
  bool is_accepting_ ABSL_GUARDED_BY(mu_) = true;
  absl::flat_hash_map<uint64_t, Open> streams_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Poller> poller_;  // Last: its thread uses everything above.
};

}  // namespace rubato

#endif  // RUBATO_COMMON_TRANSPORT_EXCHANGE_SERVER_H_
