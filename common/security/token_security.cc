#include "common/security/token_security.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/grpc_status.h"
#include "common/http/listen_address.h"
#include "common/mutex.h"
#include "common/security/call_check.h"
#include "common/security/credentials.h"
#include "common/security/job_token.h"

namespace rubato {

// Thread-safe.
class TokenSecurity::Token {
 public:
  explicit Token(std::string folder) : folder_(std::move(folder)) {}

  // Errors of ReadJobToken, until there is one.
  absl::StatusOr<std::string> Get() {
    MutexLock lock(mu_);
    if (token_.empty()) {
      absl::StatusOr<std::string> read = ReadJobToken(folder_);
      if (!read.ok()) return read.status();
      token_ = *std::move(read);
    }
    return token_;
  }

 private:
  const std::string folder_;
  Mutex mu_;
  std::string token_ ABSL_GUARDED_BY(mu_);
};

namespace {

constexpr char kKey[] = "authorization";
constexpr char kScheme[] = "Bearer ";

using GetToken = std::function<absl::StatusOr<std::string>()>;

class TokenPlugin final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit TokenPlugin(GetToken get) : get_(std::move(get)) {}

  bool IsBlocking() const override { return false; }
  const char* GetType() const override { return "rubato_job_token"; }
  // Without the token, unlike that of the base class.
  std::string DebugString() override { return "the job's token"; }

  grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
                           std::multimap<std::string, std::string>* metadata) override {
    const absl::StatusOr<std::string> token = get_();
    // Unavailable: the coordinator that makes it may be about to start.
    if (!token.ok()) return ToGrpcStatus(absl::UnavailableError(token.status().message()));
    metadata->emplace(kKey, absl::StrCat(kScheme, *token));
    return grpc::Status::OK;
  }

 private:
  const GetToken get_;
};

absl::StatusOr<std::optional<Identity>> CheckToken(const GetToken& get,
                                                   const grpc::AuthMetadataProcessor::InputMetadata& metadata) {
  const absl::StatusOr<std::string> token = get();
  if (!token.ok()) return absl::UnavailableError("this task has no job token yet");
  if (metadata.count(kKey) != 1) {
    return absl::UnauthenticatedError(
        "the call has no job token; it is in the folder of credentials of the run directory, whose owner may read it");
  }
  const grpc::string_ref& value = metadata.find(kKey)->second;
  absl::string_view given(value.data(), value.size());
  if (absl::ConsumePrefix(&given, kScheme) && SameToken(given, *token)) return std::nullopt;
  return absl::UnauthenticatedError("the call's token is not this job's");
}

}  // namespace

TokenSecurity::TokenSecurity(std::string folder)
    : folder_(std::move(folder)), token_(std::make_shared<Token>(folder_)) {}

std::shared_ptr<grpc::ServerCredentials> TokenSecurity::MakeServerCredentials() const {
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::experimental::LocalServerCredentials(LOCAL_TCP);
  credentials->SetAuthMetadataProcessor(MakeCallCheck([get = [token = token_] {
    return token->Get();
  }](const grpc::AuthContext&, const auto& metadata) { return CheckToken(get, metadata); }));
  return credentials;
}

std::shared_ptr<grpc::ChannelCredentials> TokenSecurity::MakeChannelCredentials(Party, uint32_t) const {
  return grpc::CompositeChannelCredentials(
      grpc::experimental::LocalCredentials(LOCAL_TCP),
      grpc::experimental::MetadataCredentialsFromPlugin(
          std::make_unique<TokenPlugin>([token = token_] { return token->Get(); }), GRPC_SECURITY_NONE));
}

absl::Status TokenSecurity::CheckAddress(absl::string_view field, absl::string_view address) const {
  if (IsLoopback(address)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": ", address, " is not a loopback address (127.0.0.1, localhost, [::1]), and ", folder_,
      " has no certificates (ca.crt) to protect a network with; ", HowToGetCredentials(folder_),
      ". Their folder is named in security.credentials. Or, where everybody on the network is trusted, set "
      "security.insecure to true"));
}

std::string TokenSecurity::ExpiryWarning(absl::Time) const { return ""; }

}  // namespace rubato
