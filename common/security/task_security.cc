#include "common/security/task_security.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include "absl/strings/str_cat.h"
#include "common/security/credentials.h"
#include "common/security/tls_security.h"
#include "common/security/token_security.h"
#include "common/status.h"

namespace rubato {

absl::StatusOr<std::shared_ptr<const TaskSecurity>> TaskSecurity::Create(const Options& options) {
  if (!HasAuthority(options.credentials)) return std::make_shared<TokenSecurity>(options.credentials);
  absl::StatusOr<Credentials> credentials =
      LoadCredentials(options.credentials, options.job, options.party, options.index, options.now);
  if (!credentials.ok()) {
    return absl::Status(credentials.status().code(),
                        absl::StrCat("credentials of ", PartyText(options.party, options.index), ": ",
                                     credentials.status().message(), "; ",
                                     HowToGetCredentials(options.credentials)));
  }
  return std::make_shared<TlsSecurity>(*std::move(credentials));
}

std::shared_ptr<grpc::ServerCredentials> ServerCredentialsOf(const TaskSecurity* security) {
  return security == nullptr ? grpc::InsecureServerCredentials() : security->MakeServerCredentials();
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, Party to, uint32_t index,
                                           const TaskSecurity* security, grpc::ChannelArguments arguments) {
  if (security == nullptr) return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  arguments.SetSslTargetNameOverride(kCertificateHost);
  return grpc::CreateCustomChannel(address, security->MakeChannelCredentials(to, index), arguments);
}

}  // namespace rubato
