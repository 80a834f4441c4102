#ifndef RUBATO_COMMON_SECURITY_IDENTITY_H_
#define RUBATO_COMMON_SECURITY_IDENTITY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rubato {

// What somebody may be in a job: a task's role, or an operator, who asks the coordinator for something.
enum class Party { kCoordinator, kServer, kWorker, kEvaluator, kOperator };

// Who somebody is, as a certificate says it.
struct Identity {
  std::string job;
  Party party = Party::kOperator;
  // Counted from 0 within the role; 0 of the coordinator and of operators.
  uint32_t index = 0;
};

// "worker 3", "coordinator", "operator": for messages to people.
std::string PartyText(Party party, uint32_t index);

// "rubato://<job>/<role>/<index>", the subject alternative name of its certificate.
std::string IdentityUri(const Identity& identity);
// The reverse. InvalidArgument: it is nobody's; the message has the text.
absl::StatusOr<Identity> ParseIdentityUri(absl::string_view uri);

// "worker-3", "coordinator-0", "operator": its files in a folder of credentials, without ".crt" and ".key".
std::string CredentialName(Party party, uint32_t index);

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_IDENTITY_H_
