#ifndef RUBATO_COMMON_SECURITY_CREDENTIALS_H_
#define RUBATO_COMMON_SECURITY_CREDENTIALS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/certificates.h"
#include "common/security/identity.h"

namespace rubato {

// A folder of credentials (docs/security.md): "ca.crt" of the job's authority, and "<name>.crt" and "<name>.key" of
// those who take part from there (CredentialName). Where they are made it has the authority's key as well, "ca.key".

// Whether it has an authority's certificate: those who use it speak TLS.
bool HasAuthority(const std::string& folder);

// How a folder gets what it lacks: the end of an error's message. systemd makes those of its units (LoadCredential=).
std::string HowToGetCredentials(const std::string& folder);

// Makes the authority if the folder has none, and a certificate of each, new ones in place of those that are there.
// Errors of the disk; FailedPrecondition: the authority is there without its key, or is expired at `validity.begin`.
absl::Status WriteCredentials(const std::string& folder, const std::string& job, const std::vector<Identity>& whose,
                              const Validity& validity);

// What one of them needs, found good.
struct Credentials {
  std::string authority_path;
  std::string certificate_path;
  std::string key_path;
  Identity identity = {};
  absl::Time expires = {};
};

// Errors begin with the file that is wrong: NotFound: it is not there. FailedPrecondition: others may read the key, or
// the certificate is not valid now. PermissionDenied: it is of another authority, somebody else's, or of another job
// (`job`, unless that is empty). InvalidArgument: it is something else, or the key is another's.
absl::StatusOr<Credentials> LoadCredentials(const std::string& folder, const std::string& job, Party party,
                                            uint32_t index, absl::Time now);

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_CREDENTIALS_H_
