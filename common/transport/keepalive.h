#ifndef RUBATO_COMMON_TRANSPORT_KEEPALIVE_H_
#define RUBATO_COMMON_TRANSPORT_KEEPALIVE_H_

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include "absl/time/time.h"

namespace rubato {

// How a peer that is gone without a word (host down, network cut, process stopped) is noticed: HTTP/2 pings. A broken
// stream is reported at most interval + timeout after the peer's last sign of life. Each at least 1 ms.
struct Keepalive {
  // Between pings of a connection on which nothing arrives.
  absl::Duration interval = absl::Seconds(2);
  // For the answer to a ping. Above what a loaded peer may need to answer: a server beside 128 workers on two cores
  // took over 5 s while they began.
  absl::Duration timeout = absl::Seconds(20);
};

void ApplyKeepalive(const Keepalive& keepalive, grpc::ChannelArguments* arguments);
// Also lets clients ping as often as they like.
void ApplyKeepalive(const Keepalive& keepalive, grpc::ServerBuilder* builder);

}  // namespace rubato

#endif  // RUBATO_COMMON_TRANSPORT_KEEPALIVE_H_
