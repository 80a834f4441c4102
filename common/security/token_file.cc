#include "common/security/token_file.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/security/secret_file.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr size_t kBytes = 32;

bool IsToken(absl::string_view text) {
  return text.size() == 2 * kBytes && std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

}  // namespace

absl::StatusOr<std::string> RandomToken() {
  std::string bytes(kBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), kBytes) != 1) {
    return absl::InternalError("OpenSSL has no random bytes");
  }
  return absl::BytesToHexString(bytes);
}

absl::Status MakeToken(const std::string& path) {
  if (FileExists(path)) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(MakeSecretFolder(DirectoryOf(path)));
  RUBATO_ASSIGN_OR_RETURN(const std::string token, RandomToken());
  const absl::Status written = WriteSecretFile(path, absl::StrCat(token, "\n"), /*replace=*/false);
  // Somebody else was faster.
  return absl::IsAlreadyExists(written) ? absl::OkStatus() : written;
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  RUBATO_ASSIGN_OR_RETURN(const std::string text, ReadSecretFile(path));
  const absl::string_view token = absl::StripAsciiWhitespace(text);
  if (!IsToken(token)) {
    return absl::DataLossError(absl::StrCat(path, " holds no token; remove it, and a coordinator makes another"));
  }
  return std::string(token);
}

bool SameToken(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace rubato
