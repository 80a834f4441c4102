#include "common/security/credentials.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/security/secret_file.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

// Longer than any of those that it vouches for, so that they can be renewed without it.
constexpr absl::Duration kAuthorityLifetime = absl::Hours(24 * 3650);

// Where systemd has a folder for each unit.
constexpr char kFoldersOfUnits[] = "/run/credentials/";

std::string CertificatePath(const std::string& folder, absl::string_view name) {
  return JoinPath(folder, absl::StrCat(name, ".crt"));
}
std::string KeyPath(const std::string& folder, absl::string_view name) {
  return JoinPath(folder, absl::StrCat(name, ".key"));
}

// The key first: whoever watches the folder looks for it when there is a new certificate.
absl::Status WritePair(const std::string& folder, absl::string_view name, const KeyPair& pair) {
  RUBATO_RETURN_IF_ERROR(WriteSecretFile(KeyPath(folder, name), pair.key, /*replace=*/true));
  return WriteSecretFile(CertificatePath(folder, name), pair.certificate, /*replace=*/true);
}

absl::StatusOr<KeyPair> ReadOrMakeAuthority(const std::string& folder, const std::string& job, absl::Time begin) {
  KeyPair authority;
  if (!HasAuthority(folder)) {
    RUBATO_ASSIGN_OR_RETURN(authority, MakeAuthority(job, {begin, kAuthorityLifetime}));
    RUBATO_RETURN_IF_ERROR(WritePair(folder, "ca", authority));
    return authority;
  }
  RUBATO_ASSIGN_OR_RETURN(authority.certificate, ReadFile(CertificatePath(folder, "ca")));
  if (!FileExists(KeyPath(folder, "ca"))) {
    return absl::FailedPreconditionError(
        absl::StrCat(KeyPath(folder, "ca"),
                     " is not there, so that nobody can be vouched for; use the folder that the "
                     "authority was made in, or another one for a new authority"));
  }
  RUBATO_ASSIGN_OR_RETURN(authority.key, ReadSecretFile(KeyPath(folder, "ca")));
  return authority;
}

}  // namespace

bool HasAuthority(const std::string& folder) { return FileExists(CertificatePath(folder, "ca")); }

std::string HowToGetCredentials(const std::string& folder) {
  if (!absl::StartsWith(folder, kFoldersOfUnits)) return "rubato credentials makes them";
  return "rubato credentials makes them, and systemd takes those that the unit's LoadCredential= names from "
         "/etc/credstore when it starts the unit";
}

absl::Status WriteCredentials(const std::string& folder, const std::string& job, const std::vector<Identity>& whose,
                              const Validity& validity) {
  RUBATO_RETURN_IF_ERROR(MakeSecretFolder(folder));
  RUBATO_ASSIGN_OR_RETURN(const KeyPair authority, ReadOrMakeAuthority(folder, job, validity.begin));
  for (const Identity& identity : whose) {
    absl::StatusOr<KeyPair> pair = IssueCertificate(authority, identity, validity);
    // Perhaps the authority has expired, or is not one.
    absl::Status status = pair.status();
    if (pair.ok()) status = CheckCertificate(pair->certificate, authority.certificate, validity.begin).status();
    RUBATO_RETURN_IF_ERROR(Annotate(status, CertificatePath(folder, "ca")));
    RUBATO_RETURN_IF_ERROR(WritePair(folder, CredentialName(identity.party, identity.index), *pair));
  }
  return absl::OkStatus();
}

absl::StatusOr<Credentials> LoadCredentials(const std::string& folder, const std::string& job, Party party,
                                            uint32_t index, absl::Time now) {
  const std::string name = CredentialName(party, index);
  Credentials credentials = {.authority_path = CertificatePath(folder, "ca"),
                             .certificate_path = CertificatePath(folder, name),
                             .key_path = KeyPath(folder, name)};
  KeyPair pair;
  RUBATO_ASSIGN_OR_RETURN(const std::string authority, ReadFile(credentials.authority_path));
  RUBATO_ASSIGN_OR_RETURN(pair.certificate, ReadFile(credentials.certificate_path));
  RUBATO_ASSIGN_OR_RETURN(pair.key, ReadSecretFile(credentials.key_path));
  const absl::StatusOr<CertificateFacts> facts = CheckCertificate(pair.certificate, authority, now);
  RUBATO_RETURN_IF_ERROR(Annotate(facts.status(), credentials.certificate_path));
  RUBATO_RETURN_IF_ERROR(Annotate(CheckKey(pair), credentials.key_path));
  credentials.identity = facts->identity;
  credentials.expires = facts->expires;
  const Identity& identity = facts->identity;
  if (identity.party != party || identity.index != index) {
    return absl::PermissionDeniedError(absl::StrCat(credentials.certificate_path, ": is the certificate of ",
                                                    PartyText(identity.party, identity.index), ", not of ",
                                                    PartyText(party, index)));
  }
  if (!job.empty() && identity.job != job) {
    return absl::PermissionDeniedError(absl::StrCat(credentials.certificate_path, ": is of the job \"", identity.job,
                                                    "\", and the config's name is \"", job, "\""));
  }
  return credentials;
}

}  // namespace rubato
