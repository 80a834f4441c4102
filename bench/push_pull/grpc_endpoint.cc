#include "bench/push_pull/grpc_endpoint.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/push_pull/sockets.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

using Arguments = std::vector<std::pair<std::string, int>>;

// What was found to be fastest, then what the setup adds or replaces.
absl::StatusOr<Arguments> ChannelArguments(const Setup& setup) {
  Arguments arguments = {
      {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1},
      {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1},
  };
  for (absl::string_view entry : absl::StrSplit(setup.channel_arguments, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    int value = 0;
    if (!absl::SimpleAtoi(parts.second, &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--channel_arguments: \"", entry, "\" is not \"key=value\" with a whole number"));
    }
    arguments.emplace_back(std::string(parts.first), value);
  }
  return arguments;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcEndpoint>> GrpcEndpoint::Create(const Setup& setup, const Ready& ready) {
  auto endpoint = std::make_unique<GrpcEndpoint>();
  RUBATO_ASSIGN_OR_RETURN(const Arguments arguments, ChannelArguments(setup));
  grpc::ServerBuilder builder;
  for (const auto& [key, value] : arguments) builder.AddChannelArgument(key, value);
  builder.RegisterAsyncGenericService(&endpoint->service_);
  endpoint->queue_ = builder.AddCompletionQueue();
  endpoint->server_ = builder.BuildAndStart();
  RUBATO_ASSIGN_OR_RETURN(const int descriptor, AcceptOne(setup, ready));
  RUBATO_RETURN_IF_ERROR(SetNonBlocking(descriptor));
  grpc::AddInsecureChannelFromFd(endpoint->server_.get(), descriptor);
  return endpoint;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectGrpc(const Setup& setup, const std::string& address) {
  RUBATO_ASSIGN_OR_RETURN(const Arguments list, ChannelArguments(setup));
  grpc::ChannelArguments arguments;
  for (const auto& [key, value] : list) arguments.SetInt(key, value);
  RUBATO_ASSIGN_OR_RETURN(const int descriptor, ConnectTo(setup, address));
  RUBATO_RETURN_IF_ERROR(SetNonBlocking(descriptor));
  return grpc::CreateCustomInsecureChannelFromFd("localhost", descriptor, arguments);
}

}  // namespace rubato::bench
