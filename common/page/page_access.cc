#include "common/page/page_access.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/http/bearer_token.h"
#include "common/http/listen_address.h"
#include "common/security/operator_token.h"

namespace rubato {
namespace {

HttpReply Refuse(int status, std::string why) { return {.status = status, .body = absl::StrCat(why, "\n")}; }

// Nothing: it has the token.
std::optional<HttpReply> TokenRefusal(const PageAccess& access, const HttpRequest& request) {
  if (access.token.empty()) return Refuse(403, "this page only shows: nothing can be asked for here");
  const std::optional<absl::string_view> shown = BearerToken(request);
  if (!shown.has_value()) {
    return Refuse(401, "the operator's token is missing: open the page with the whole address that was printed");
  }
  if (!SameToken(*shown, access.token)) return Refuse(401, "this is not the operator's token of this page");
  return std::nullopt;
}

}  // namespace

std::optional<HttpReply> Refusal(const PageAccess& access, const HttpRequest& request) {
  const std::string host(request.Header("host"));
  const bool local = IsLoopback(access.listen);
  if (local && !IsLoopback(host)) {
    return Refuse(403, absl::StrCat("Host: value \"", absl::CHexEscape(host), "\"; allowed: a name of loopback"));
  }
  const absl::string_view origin = request.Header("origin");
  if (request.post && !origin.empty() && origin != absl::StrCat("http://", host)) {
    return Refuse(403, absl::StrCat("Origin: value \"", absl::CHexEscape(origin), "\"; allowed: the page itself"));
  }
  if (request.post || (!local && request.path != "/")) return TokenRefusal(access, request);
  return std::nullopt;
}

}  // namespace rubato
