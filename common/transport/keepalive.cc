#include "common/transport/keepalive.h"

#include <algorithm>
#include <climits>

namespace rubato {
namespace {

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(duration), 1, INT_MAX));
}

}  // namespace

void ApplyKeepalive(const Keepalive& keepalive, grpc::ChannelArguments* arguments) {
  arguments->SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(keepalive.interval));
  arguments->SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(keepalive.timeout));
  arguments->SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

void ApplyKeepalive(const Keepalive& keepalive, grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(keepalive.interval));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(keepalive.timeout));
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
}

}  // namespace rubato
