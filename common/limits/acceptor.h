#ifndef RUBATO_COMMON_LIMITS_ACCEPTOR_H_
#define RUBATO_COMMON_LIMITS_ACCEPTOR_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/file_descriptor.h"
#include "common/limits/connection_rate.h"
#include "common/limits/refusal_log.h"

namespace rubato {

// Accepts the connections of a gRPC server in its place. gRPC 1.51 listens no more, for good, once accepting has failed
// for want of a descriptor, and takes connections without a bound: whoever reaches a port could so shut it. Here a host
// that makes more connections in a while than a job needs is refused, some descriptors are always left to the process,
// and if there are none, connections wait until there are. One thread.
//
//   RUBATO_ASSIGN_OR_RETURN(auto acceptor, Acceptor::Listen({.listen = "0.0.0.0:0", ...}, credentials, &builder));
//   server = builder.BuildAndStart();
//   acceptor->Start();
//   ...
//   acceptor.reset();
//   server->Shutdown();
class Acceptor {
 public:
  struct Options {
    // "host:port"; port 0 takes a free one. A host that has several addresses is listened on at all of them.
    std::string listen;
    // Of one host, within `period`.
    size_t connections = 4096;
    absl::Duration period = absl::Seconds(10);
    // Of the process, that no connection gets; fewer if it may have few at all.
    size_t spare_descriptors = 64;
    // How long a peer may take to acknowledge what is sent, before its connection ends.
    absl::Duration unacknowledged = absl::Seconds(20);
    // A clock that moves by itself. Null: real time.
    const Clock* clock = nullptr;
    // Outlives the acceptor. Null: nothing is said.
    RefusalLog* refusals = nullptr;
  };

  // Listens when it returns; before BuildAndStart. InvalidArgument: `listen` is not "host:port". Unavailable: the port
  // is taken, or the host is not an address of this machine; the message says which.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(Options options,
                                                          std::shared_ptr<grpc::ServerCredentials> credentials,
                                                          grpc::ServerBuilder* builder);
  // As Stop.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  int port() const { return port_; }
  // Begins to accept; after BuildAndStart.
  void Start();
  // Accepts no more. Before the server's Shutdown.
  void Stop();

 private:
  explicit Acceptor(Options options);

  absl::Status Bind();
  void Run();
  // Takes those that wait. False: there are no descriptors.
  bool AcceptAll(int listener);
  // Whether this one may stay.
  bool Admit(int connection, const std::string& host);
  void Note(const std::string& host, absl::string_view kind, absl::string_view why);

  const Options options_;
  const RealClock real_clock_;
  const Clock* const clock_;
  int port_ = 0;
  std::vector<FileDescriptor> listeners_;
  // Readable when the thread is to end.
  FileDescriptor stop_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> grpc_;
  ConnectionRate rate_;  // The thread's.
  std::thread thread_;   // Last: it uses everything above.
};

}  // namespace rubato

#endif  // RUBATO_COMMON_LIMITS_ACCEPTOR_H_
