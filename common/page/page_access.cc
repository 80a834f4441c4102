#include "common/page/page_access.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/security/operator_token.h"

namespace rubato {
namespace {

absl::string_view HostOf(absl::string_view address) {
  const size_t bracket = address.find(']');
  if (bracket != absl::string_view::npos) return address.substr(0, bracket + 1);
  return address.substr(0, address.find(':'));
}

HttpReply Refuse(int status, std::string why) { return {.status = status, .body = absl::StrCat(why, "\n")}; }

// Nothing: it has the token.
std::optional<HttpReply> TokenRefusal(const PageAccess& access, const HttpRequest& request) {
  if (access.token.empty()) return Refuse(403, "this page only shows: nothing can be asked for here");
  absl::string_view shown = request.Header("authorization");
  if (!absl::ConsumePrefix(&shown, "Bearer ")) {
    return Refuse(
        401, "the operator's token is missing: open the page with the address that was printed when the job began");
  }
  if (!SameToken(shown, access.token)) return Refuse(401, "this is not the operator's token of this run");
  return std::nullopt;
}

}  // namespace

bool IsLoopback(absl::string_view address) {
  const absl::string_view host = HostOf(address);
  return host == "127.0.0.1" || host == "localhost" || host == "[::1]";
}

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
