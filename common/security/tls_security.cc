#include "common/security/tls_security.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/grpc_status.h"
#include "common/security/call_check.h"
#include "common/security/certificates.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

namespace tls = grpc::experimental;

constexpr unsigned kRefreshSeconds = 3;
// When its end is near enough to be spoken of.
constexpr absl::Duration kSoon = absl::Hours(24 * 7);

// Whether somebody who has proved to have this identity is the one who is expected.
using Expected = std::function<absl::Status(const Identity& identity)>;

// Looks at a certificate that the authority vouches for, which gRPC has seen to.
class PeerVerifier final : public tls::ExternalCertificateVerifier {
 public:
  explicit PeerVerifier(Expected expected) : expected_(std::move(expected)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* result) override {
    const std::vector<grpc::string_ref> uris = request->uri_names();
    absl::StatusOr<Identity> identity = absl::UnauthenticatedError("the certificate names nobody of a job");
    if (uris.size() == 1) identity = ParseIdentityUri(absl::string_view(uris[0].data(), uris[0].size()));
    *result = ToGrpcStatus(identity.ok() ? expected_(*identity) : identity.status());
    return true;  // It is done.
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  const Expected expected_;
};

absl::Status CheckJob(const Identity& identity, const std::string& job) {
  if (identity.job == job) return absl::OkStatus();
  return absl::UnauthenticatedError(absl::StrCat("the certificate is of another job, \"", identity.job, "\""));
}

void Describe(const std::shared_ptr<tls::CertificateProviderInterface>& provider, Expected expected,
              tls::TlsCredentialsOptions* options) {
  options->set_certificate_provider(provider);
  options->watch_root_certs();
  options->watch_identity_key_cert_pairs();
  options->set_certificate_verifier(tls::ExternalCertificateVerifier::Create<PeerVerifier>(std::move(expected)));
  // Who it is matters, and not under which of its names it was reached.
  options->set_check_call_host(false);
}

}  // namespace

TlsSecurity::TlsSecurity(Credentials credentials)
    : credentials_(std::move(credentials)),
      provider_(std::make_shared<tls::FileWatcherCertificateProvider>(
          credentials_.key_path, credentials_.certificate_path, credentials_.authority_path, kRefreshSeconds)) {}

std::shared_ptr<grpc::ServerCredentials> TlsSecurity::MakeServerCredentials() const {
  const std::string& job = credentials_.identity.job;
  tls::TlsServerCredentialsOptions options(provider_);
  Describe(
      provider_, [job](const Identity& peer) { return CheckJob(peer, job); }, &options);
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  std::shared_ptr<grpc::ServerCredentials> credentials = tls::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(
      MakeCallCheck([job](const grpc::AuthContext& context, const auto&) -> absl::StatusOr<std::optional<Identity>> {
        std::optional<Identity> who = PeerIdentity(context);
        if (!who.has_value()) return absl::UnauthenticatedError("the connection has no certificate of a job's task");
        const absl::Status checked = CheckJob(*who, job);
        if (!checked.ok()) return checked;
        return who;
      }));
  return credentials;
}

std::shared_ptr<grpc::ChannelCredentials> TlsSecurity::MakeChannelCredentials(Party to, uint32_t index) const {
  const std::string& job = credentials_.identity.job;
  tls::TlsChannelCredentialsOptions options;
  const auto expected = [job, to, index](const Identity& peer) -> absl::Status {
    if (peer.party == to && peer.index == index) return CheckJob(peer, job);
    return absl::UnauthenticatedError(absl::StrCat("the certificate is that of ", PartyText(peer.party, peer.index),
                                                   ", not of ", PartyText(to, index)));
  };
  Describe(provider_, expected, &options);
  options.set_verify_server_certs(true);
  return tls::TlsCredentials(options);
}

absl::Status TlsSecurity::CheckAddress(absl::string_view, absl::string_view) const { return absl::OkStatus(); }

std::string TlsSecurity::ExpiryWarning(absl::Time now) const {
  const absl::StatusOr<std::string> certificate = ReadFile(credentials_.certificate_path);
  const absl::StatusOr<std::string> authority = ReadFile(credentials_.authority_path);
  const std::string& path = credentials_.certificate_path;
  if (!certificate.ok() || !authority.ok()) return absl::StrCat(path, " cannot be read any more");
  const absl::StatusOr<CertificateFacts> facts = CheckCertificate(*certificate, *authority, now);
  if (!facts.ok()) return absl::StrCat(path, ": ", facts.status().message(), "; rubato credentials makes new ones");
  if (facts->expires - now >= kSoon) return "";
  return absl::StrFormat(
      "%s expires in %.1f hours; rubato credentials makes new ones, which are taken without a restart", path,
      absl::ToDoubleHours(facts->expires - now));
}

}  // namespace rubato
