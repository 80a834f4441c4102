#ifndef RUBATO_COMMON_SECURITY_TOKEN_SECURITY_H_
#define RUBATO_COMMON_SECURITY_TOKEN_SECURITY_H_

#include <memory>
#include <string>

#include "common/security/task_security.h"

namespace rubato {

// Tasks on one machine, over its loopback address in plain text: calls carry the job's token as metadata
// "authorization: Bearer <token>".
class TokenSecurity final : public TaskSecurity {
 public:
  // The file is read when the token is needed first.
  explicit TokenSecurity(std::string folder);

  std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials() const override;
  std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(Party to, uint32_t index) const override;
  absl::Status CheckAddress(absl::string_view field, absl::string_view address) const override;
  std::string ExpiryWarning(absl::Time now) const override;

 private:
  class Token;

  const std::string folder_;
  const std::shared_ptr<Token> token_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_TOKEN_SECURITY_H_
