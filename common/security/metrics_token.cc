#include "common/security/metrics_token.h"

#include "absl/strings/str_cat.h"
#include "common/http/listen_address.h"
#include "common/security/credentials.h"
#include "common/security/open_security.h"
#include "common/security/token_file.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {

std::string MetricsTokenPath(const std::string& folder) { return JoinPath(folder, "metrics.token"); }

absl::StatusOr<std::string> TokenForMetrics(const std::string& folder, const std::string& listen) {
  if (listen.empty() || folder.empty() || IsLoopback(listen)) return "";
  const std::string path = MetricsTokenPath(folder);
  if (!HasAuthority(folder)) {
    RUBATO_RETURN_IF_ERROR(MakeToken(path));
  } else if (!FileExists(path)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--metrics_listen: ", listen, " is not a loopback address (127.0.0.1, localhost, [::1]), and ", path,
        ", without which nobody is to read metrics there, is missing. `rubato credentials` makes it beside the "
        "certificates; copy it from there, or listen on loopback"));
  }
  return ReadToken(path);
}

absl::StatusOr<std::string> TokenForMetrics(const v1::JobConfig& config, const std::string& listen) {
  return TokenForMetrics(config.security().insecure() ? "" : CredentialsFolder(config), listen);
}

}  // namespace rubato
