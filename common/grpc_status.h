#ifndef RUBATO_COMMON_GRPC_STATUS_H_
#define RUBATO_COMMON_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace rubato {

// The one place where Abseil's and gRPC's statuses meet; their codes have the same numbers.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace rubato

#endif  // RUBATO_COMMON_GRPC_STATUS_H_
