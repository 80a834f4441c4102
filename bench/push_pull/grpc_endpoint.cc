#include "bench/push_pull/grpc_endpoint.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "bench/push_pull/sockets.h"
#include "common/security/certificates.h"
#include "common/security/credentials.h"
#include "common/status.h"
#include "common/storage/file.h"

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

// Texts of the files that gRPC is given.
struct TlsFiles {
  std::string authority;
  std::string key;
  std::string certificate;
};

absl::StatusOr<TlsFiles> ReadTlsFiles(const Setup& setup, Party party) {
  RUBATO_ASSIGN_OR_RETURN(const Credentials credentials,
                          LoadCredentials(setup.credentials, /*job=*/"", party, 0, absl::Now()));
  TlsFiles files;
  RUBATO_ASSIGN_OR_RETURN(files.authority, ReadFile(credentials.authority_path));
  RUBATO_ASSIGN_OR_RETURN(files.key, ReadFile(credentials.key_path));
  RUBATO_ASSIGN_OR_RETURN(files.certificate, ReadFile(credentials.certificate_path));
  return files;
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsServerCredentials(const Setup& setup) {
  RUBATO_ASSIGN_OR_RETURN(const TlsFiles files, ReadTlsFiles(setup, Party::kServer));
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = files.authority;
  options.pem_key_cert_pairs.push_back({files.key, files.certificate});
  return grpc::SslServerCredentials(options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcEndpoint>> GrpcEndpoint::Create(const Setup& setup, const Ready& ready) {
  auto endpoint = std::make_unique<GrpcEndpoint>();
  RUBATO_ASSIGN_OR_RETURN(const Arguments arguments, ChannelArguments(setup));
  grpc::ServerBuilder builder;
  for (const auto& [key, value] : arguments) builder.AddChannelArgument(key, value);
  builder.RegisterAsyncGenericService(&endpoint->service_);
  endpoint->queue_ = builder.AddCompletionQueue();
  if (!setup.credentials.empty()) {
    RUBATO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials, TlsServerCredentials(setup));
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port);
    endpoint->server_ = builder.BuildAndStart();
    if (endpoint->server_ == nullptr) return absl::UnavailableError("cannot listen on loopback");
    ready(absl::StrCat("127.0.0.1:", port));
    return endpoint;
  }
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
  if (!setup.credentials.empty()) {
    RUBATO_ASSIGN_OR_RETURN(const TlsFiles files, ReadTlsFiles(setup, Party::kWorker));
    arguments.SetSslTargetNameOverride(kCertificateHost);
    return grpc::CreateCustomChannel(address, grpc::SslCredentials({files.authority, files.key, files.certificate}),
                                     arguments);
  }
  RUBATO_ASSIGN_OR_RETURN(const int descriptor, ConnectTo(setup, address));
  RUBATO_RETURN_IF_ERROR(SetNonBlocking(descriptor));
  return grpc::CreateCustomInsecureChannelFromFd("localhost", descriptor, arguments);
}

}  // namespace rubato::bench
