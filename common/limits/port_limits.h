#ifndef RUBATO_COMMON_LIMITS_PORT_LIMITS_H_
#define RUBATO_COMMON_LIMITS_PORT_LIMITS_H_

#include <grpcpp/server_builder.h>

#include <cstddef>
#include <string>

#include "absl/time/time.h"

namespace rubato {

namespace v1 {
class JobConfig;
}  // namespace v1
struct ModelSpec;

// What others may take of a gRPC port, each of them and all together. Beyond a bound whoever asks for more is refused
// with RESOURCE_EXHAUSTED, and everybody else goes on.
struct PortLimits {
  // A message that is received; a longer one ends its call before it has come. 1 to 2^31 - 1.
  size_t message_bytes = size_t{4} << 20;
  // Headers of a call; ours have a token and a path.
  int header_bytes = 8 << 10;
  // Calls of one connection at a time, as HTTP/2 tells the client. More than streams_per_task, so that those are
  // refused by name, where a client of gRPC's would wait without a word.
  int calls_per_connection = 512;
  // Streams and calls that are open at a time: of a task that has proved which one it is, and of others of one host.
  size_t streams_per_task = 256;
  size_t streams_per_host = 4096;
  // Requests of one stream that have come and are not answered yet, and what they have in bytes; 0: no bound.
  size_t unanswered_requests = 0;
  size_t unanswered_bytes = 0;
  // Answers that wait to be sent on one stream, whose client does not read them.
  size_t queued_bytes = size_t{1} << 30;
  // Of what gRPC has received, on all connections. As it gets near, gRPC takes less from all of them, then no new
  // connections; so it is well above what a job needs.
  size_t memory_bytes = size_t{1} << 30;
  // Of gRPC's synchronous services: more than there may be copies of parts in flight.
  int threads = 96;
  // From a connection to the end of its handshakes: a task needs milliseconds, and whoever says nothing is gone then.
  // With 10 s some were cut off while 128 workers began on two cores.
  absl::Duration handshake_timeout = absl::Seconds(30);
  // A connection without a call; tasks connect again when they call.
  absl::Duration idle_timeout = absl::Minutes(5);
};

// Of a coordinator: its messages grow with the model's number of tensors alone, and 4 MiB have those of 20,000.
PortLimits CoordinatorLimits();

// Of a server, from the sizes of its job's model.
PortLimits ServerLimits(const v1::JobConfig& config, const ModelSpec& model);

// Of a port with gRPC's health service alone.
PortLimits ProbeLimits();

// Sets what gRPC itself sees to. `name`: of the port, for gRPC's log.
void ApplyLimits(const PortLimits& limits, const std::string& name, grpc::ServerBuilder* builder);

}  // namespace rubato

#endif  // RUBATO_COMMON_LIMITS_PORT_LIMITS_H_
