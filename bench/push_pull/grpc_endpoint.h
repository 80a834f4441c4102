#ifndef RUBATO_BENCH_PUSH_PULL_GRPC_ENDPOINT_H_
#define RUBATO_BENCH_PUSH_PULL_GRPC_ENDPOINT_H_

#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/push_pull/subject.h"

namespace rubato::bench {

// The method that the references call; nothing looks at it.
inline constexpr char kMethod[] = "/bench.Reference/PushPull";

// A gRPC server for one client, tuned as well as is known, with one completion queue.
class GrpcEndpoint {
 public:
  // Starts the server, and waits for the client's connection, or, with credentials, listens for it. InvalidArgument:
  // setup.channel_arguments. Errors of LoadCredentials.
  static absl::StatusOr<std::unique_ptr<GrpcEndpoint>> Create(const Setup& setup, const Ready& ready);

  grpc::AsyncGenericService* service() { return &service_; }
  grpc::ServerCompletionQueue* queue() { return queue_.get(); }

 private:
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
};

// The other end, tuned in the same way.
absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectGrpc(const Setup& setup, const std::string& address);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_GRPC_ENDPOINT_H_
