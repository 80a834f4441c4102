#ifndef RUBATO_COMMON_HEALTH_TESTING_PROBE_H_
#define RUBATO_COMMON_HEALTH_TESTING_PROBE_H_

#include <string>

#include "absl/status/statusor.h"

namespace rubato {

// What a probe sees at "host:port", within ten seconds. Errors are the server's, or gRPC's.

// grpc.health.v1.Health/Check: "SERVING", "NOT_SERVING". NotFound: the service is not known there.
absl::StatusOr<std::string> ProbeHealth(const std::string& address, const std::string& service);

// The answer of server reflection to a request for all services: a message with their names.
absl::StatusOr<std::string> ProbeServices(const std::string& address);

// Its answer to a request for the file that declares `symbol`.
absl::StatusOr<std::string> ProbeSymbol(const std::string& address, const std::string& symbol);

}  // namespace rubato

#endif  // RUBATO_COMMON_HEALTH_TESTING_PROBE_H_
