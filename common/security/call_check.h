#ifndef RUBATO_COMMON_SECURITY_CALL_CHECK_H_
#define RUBATO_COMMON_SECURITY_CALL_CHECK_H_

#include <grpcpp/security/auth_metadata_processor.h>

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "common/security/identity.h"

namespace rubato {

// Who makes a call, as far as the connection or what comes with the call says so; nullopt: somebody of the job.
// Unauthenticated: nobody of the job; the message says what is wrong.
using Authenticate = std::function<absl::StatusOr<std::optional<Identity>>(
    const grpc::AuthContext& context, const grpc::AuthMetadataProcessor::InputMetadata& metadata)>;

// What gRPC asks of every call of a server, of whichever service, before its handler is found: whether the table
// (permissions.h) allows it.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeCallCheck(Authenticate authenticate);

// Whose certificate a connection was made with; nullopt: with none of a job's task.
std::optional<Identity> PeerIdentity(const grpc::AuthContext& context);

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_CALL_CHECK_H_
