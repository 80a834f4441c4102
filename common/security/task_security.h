#ifndef RUBATO_COMMON_SECURITY_TASK_SECURITY_H_
#define RUBATO_COMMON_SECURITY_TASK_SECURITY_H_

#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/security/identity.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace rubato {

// How a task, or an operator, proves that it belongs to a job, and whom it believes to. Null pointers to it are allowed
// where it is asked for, and mean: everybody is believed, and nothing is proved. Immutable, thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(auto security, TaskSecurity::Create({.credentials = "runs/mnist/credentials", ...}));
//   builder.AddListeningPort(listen, ServerCredentialsOf(security.get()), &port);
class TaskSecurity {
 public:
  struct Options {
    // The folder of credentials.
    std::string credentials;
    // Empty: whichever the certificate is of.
    std::string job = {};
    Party party = Party::kOperator;
    uint32_t index = 0;
    absl::Time now;
  };

  // Mutual TLS if the folder has an authority's certificate, and otherwise the job's token, which may come later, and
  // which serves on this machine alone. Errors of LoadCredentials, with what to do.
  static absl::StatusOr<std::shared_ptr<const TaskSecurity>> Create(const Options& options);

  virtual ~TaskSecurity() = default;

  // Of a server, whose calls are all checked against the table (permissions.h) before anything else is done about them:
  // Unauthenticated, PermissionDenied.
  virtual std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials() const = 0;
  // For calls to that task, and to nobody else.
  virtual std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(Party to, uint32_t index) const = 0;

  // Whether a port at "host:port" may be listened on or called. InvalidArgument: it may not; the message begins with
  // `field`, and has what to do.
  virtual absl::Status CheckAddress(absl::string_view field, absl::string_view address) const = 0;

  // That the certificate expires soon, or has expired; empty: it does not.
  virtual std::string ExpiryWarning(absl::Time now) const = 0;
};

// Those of a server; `security` may be null.
std::shared_ptr<grpc::ServerCredentials> ServerCredentialsOf(const TaskSecurity* security);

// A channel to a task at "host:port"; `security` may be null. Connects when something is asked.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, Party to, uint32_t index,
                                           const TaskSecurity* security, grpc::ChannelArguments arguments);

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_TASK_SECURITY_H_
