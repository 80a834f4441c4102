#include "common/session/coordinator_channel.h"

#include <grpcpp/support/channel_arguments.h>

namespace rubato {

std::shared_ptr<grpc::Channel> OpenCoordinatorChannel(const std::string& address, const TaskSecurity* security) {
  grpc::ChannelArguments arguments;
  // A job of many chunks has a large description.
  arguments.SetMaxReceiveMessageSize(-1);
  // A coordinator that stands still or a host that is gone break the stream within half a minute. Not sooner: beside
  // 128 workers on two cores, while they began, a ping was answered after more than 5 s.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 5000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return OpenChannel(address, Party::kCoordinator, 0, security, arguments);
}

}  // namespace rubato
