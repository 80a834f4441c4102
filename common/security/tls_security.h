#ifndef RUBATO_COMMON_SECURITY_TLS_SECURITY_H_
#define RUBATO_COMMON_SECURITY_TLS_SECURITY_H_

#include <memory>
#include <string>

#include "common/security/credentials.h"
#include "common/security/task_security.h"

namespace grpc::experimental {
class CertificateProviderInterface;
}  // namespace grpc::experimental

namespace rubato {

// Mutual TLS: both sides of a connection show a certificate of the job's authority. Files that are replaced are read
// again within seconds, and hold for connections that are made from then on.
class TlsSecurity final : public TaskSecurity {
 public:
  explicit TlsSecurity(Credentials credentials);

  std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials() const override;
  std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(Party to, uint32_t index) const override;
  absl::Status CheckAddress(absl::string_view field, absl::string_view address) const override;
  std::string ExpiryWarning(absl::Time now) const override;

 private:
  const Credentials credentials_;
  const std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_TLS_SECURITY_H_
