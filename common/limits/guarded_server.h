#ifndef RUBATO_COMMON_LIMITS_GUARDED_SERVER_H_
#define RUBATO_COMMON_LIMITS_GUARDED_SERVER_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/limits/acceptor.h"
#include "common/limits/port_limits.h"
#include "common/limits/refusal_log.h"

namespace rubato {

// A gRPC server whose port has limits: those that gRPC knows, and those of an Acceptor. Thread-safe.
//
//   grpc::ServerBuilder builder;
//   builder.RegisterService(&service);
//   RUBATO_ASSIGN_OR_RETURN(auto server, GuardedServer::Start({.listen = "0.0.0.0:0", ...}, &builder));
class GuardedServer {
 public:
  struct Options {
    // "host:port"; port 0 takes a free one. Not shared with another process.
    std::string listen;
    std::shared_ptr<grpc::ServerCredentials> credentials;
    PortLimits limits = {};
    // Outlives the server. Null: nothing is said of who is refused.
    RefusalLog* refusals = nullptr;
  };

  // Serves when it returns. `builder` has all but the port. InvalidArgument: `listen` is not "host:port". Unavailable:
  // the port is taken, or the host is not an address of this machine; the message says which.
  static absl::StatusOr<std::unique_ptr<GuardedServer>> Start(const Options& options, grpc::ServerBuilder* builder);
  // Ends what is still open.
  ~GuardedServer();

  int port() const { return acceptor_->port(); }
  grpc::Server* grpc() { return server_.get(); }

  // Takes no more connections, waits for calls until `deadline`, and ends those that are left.
  template <typename Time>
  void Shutdown(const Time& deadline) {
    acceptor_->Stop();
    server_->Shutdown(deadline);
  }

 private:
  GuardedServer(std::unique_ptr<Acceptor> acceptor, std::unique_ptr<grpc::Server> server)
      : server_(std::move(server)), acceptor_(std::move(acceptor)) {}

  const std::unique_ptr<grpc::Server> server_;
  const std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_LIMITS_GUARDED_SERVER_H_
