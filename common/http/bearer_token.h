#ifndef RUBATO_COMMON_HTTP_BEARER_TOKEN_H_
#define RUBATO_COMMON_HTTP_BEARER_TOKEN_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/http/http_request.h"

namespace rubato {

// What a request shows as "Authorization: Bearer TOKEN", as long as the request is there. Nothing: it shows none.
inline std::optional<absl::string_view> BearerToken(const HttpRequest& request) {
  absl::string_view shown = request.Header("authorization");
  if (!absl::ConsumePrefix(&shown, "Bearer ")) return std::nullopt;
  return shown;
}

}  // namespace rubato

#endif  // RUBATO_COMMON_HTTP_BEARER_TOKEN_H_
