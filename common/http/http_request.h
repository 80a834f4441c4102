#ifndef RUBATO_COMMON_HTTP_HTTP_REQUEST_H_
#define RUBATO_COMMON_HTTP_HTTP_REQUEST_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace rubato {

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// What an HTTP/1 client asks for, as far as it matters to a server that only shows pages.
struct HttpRequest {
  // GET or HEAD.
  bool head_only = false;
  // Without the query.
  std::string path;
  // The server's, which fills it in.
  int port = 0;
  // Not 0: the request cannot be served, and this status says why. 400: it is no HTTP/1 request. 405: it has another
  // method.
  int error = 0;
};

// Bytes of a request's head that are read; a longer one is answered 431.
inline constexpr size_t kHttpHeadMax = 8192;

// Reads the head of a request from all bytes that have come so far. Nothing: its end has not come yet. Pure.
std::optional<HttpRequest> ParseHttpRequest(absl::string_view bytes);

// An answer's bytes, after which the connection is closed. Pure.
std::string FormatHttpReply(const HttpReply& reply, bool head_only);

}  // namespace rubato

#endif  // RUBATO_COMMON_HTTP_HTTP_REQUEST_H_
