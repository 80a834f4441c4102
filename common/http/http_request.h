#ifndef RUBATO_COMMON_HTTP_HTTP_REQUEST_H_
#define RUBATO_COMMON_HTTP_HTTP_REQUEST_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace rubato {

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  // Others, "Name: value" each.
  std::vector<std::string> headers = {};
  // The answer has no end: after the body comes what HttpServer::Publish is given, until the client leaves.
  bool stream = false;
};

// What an HTTP/1 client asks for, as far as it matters to a server of a few pages.
struct HttpRequest {
  // GET, HEAD, or POST if one of them.
  bool head_only = false;
  bool post = false;
  // Without the query.
  std::string path;
  // By their names in lower case; of a name that comes twice, the last one.
  std::map<std::string, std::string> headers;
  // POST.
  std::string body;
  // The server's, which fills them in: its port, and the client's address without port.
  int port = 0;
  std::string peer;
  // Not 0: the request cannot be served, and this status says why. 400: it is no HTTP/1 request. 405: it has another
  // method. 411: a POST without its length. 413: its body is too long.
  int error = 0;

  // Empty if it is not there. `name` is in lower case.
  absl::string_view Header(const std::string& name) const;
};

// Bytes of a request's head that are read; a longer one is answered 431.
inline constexpr size_t kHttpHeadMax = 8192;

// Reads a request from all bytes that have come so far. Nothing: its end has not come yet. POST is served with bodies
// of up to `body_max` bytes, and not at all with 0. Pure.
std::optional<HttpRequest> ParseHttpRequest(absl::string_view bytes, size_t body_max = 0);

// An answer's bytes, after which the connection is closed unless it is a stream. Pure.
std::string FormatHttpReply(const HttpReply& reply, bool head_only);

}  // namespace rubato

#endif  // RUBATO_COMMON_HTTP_HTTP_REQUEST_H_
