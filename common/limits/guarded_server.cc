#include "common/limits/guarded_server.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato {

absl::StatusOr<std::unique_ptr<GuardedServer>> GuardedServer::Start(const Options& options,
                                                                    grpc::ServerBuilder* builder) {
  ApplyLimits(options.limits, options.listen, builder);
  Acceptor::Options accepting;
  accepting.listen = options.listen;
  // Of those that say nothing a host then has no more than what all its tasks may have open.
  accepting.connections = options.limits.streams_per_host;
  accepting.period = options.limits.handshake_timeout;
  accepting.refusals = options.refusals;
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<Acceptor> acceptor,
                          Acceptor::Listen(std::move(accepting), options.credentials, builder));
  std::unique_ptr<grpc::Server> server = builder->BuildAndStart();
  if (server == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", options.listen, ": gRPC does not start a server"));
  }
  acceptor->Start();
  return absl::WrapUnique(new GuardedServer(std::move(acceptor), std::move(server)));
}

GuardedServer::~GuardedServer() { acceptor_->Stop(); }

}  // namespace rubato
