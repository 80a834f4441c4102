#ifndef RUBATO_COMMON_SECURITY_CERTIFICATES_H_
#define RUBATO_COMMON_SECURITY_CERTIFICATES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/identity.h"

namespace rubato {

// X.509 certificates of a job's tasks, ECDSA on P-256, in PEM: made, read and checked with OpenSSL.

// The host that every task's certificate is of, and that its callers ask for: whose it is, its URI says.
inline constexpr char kCertificateHost[] = "rubato";

struct KeyPair {
  std::string certificate;
  std::string key;
};

// From `begin` on, for so long.
struct Validity {
  absl::Time begin;
  absl::Duration lifetime;
};

// An authority that vouches for the tasks of a job, and for nobody else's authority.
absl::StatusOr<KeyPair> MakeAuthority(const std::string& job, const Validity& validity);

// A certificate for TLS as client and as server. InvalidArgument: `authority` is not a key pair.
absl::StatusOr<KeyPair> IssueCertificate(const KeyPair& authority, const Identity& identity, const Validity& validity);

struct CertificateFacts {
  Identity identity;
  absl::Time expires;
};

// Whose certificate it is, if `authorities` (one or more certificates) vouch for it at `now`. InvalidArgument: one of
// both is not a certificate, or it names nobody of a job. PermissionDenied: it is of another authority.
// FailedPrecondition: it has expired, or is not valid yet; the message has the time.
absl::StatusOr<CertificateFacts> CheckCertificate(const std::string& certificate, const std::string& authorities,
                                                  absl::Time now);

// InvalidArgument: the key is not that of the certificate.
absl::Status CheckKey(const KeyPair& pair);

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_CERTIFICATES_H_
