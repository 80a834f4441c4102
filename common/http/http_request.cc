#include "common/http/http_request.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace rubato {
namespace {

absl::string_view Reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

}  // namespace

std::optional<HttpRequest> ParseHttpRequest(absl::string_view bytes) {
  HttpRequest request;
  const size_t head_end = bytes.find("\r\n\r\n");
  if (head_end == absl::string_view::npos) {
    if (bytes.size() <= kHttpHeadMax) return std::nullopt;
    request.error = 431;
    return request;
  }
  const absl::string_view line = bytes.substr(0, bytes.find("\r\n"));
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || !absl::StartsWith(words[2], "HTTP/1.") || !absl::StartsWith(words[1], "/")) {
    request.error = 400;
    return request;
  }
  if (words[0] != "GET" && words[0] != "HEAD") request.error = 405;
  request.head_only = words[0] == "HEAD";
  request.path = std::string(words[1].substr(0, words[1].find('?')));
  return request;
}

std::string FormatHttpReply(const HttpReply& reply, bool head_only) {
  return absl::StrCat("HTTP/1.1 ", reply.status, " ", Reason(reply.status), "\r\nContent-Type: ", reply.content_type,
                      "\r\nContent-Length: ", reply.body.size(), reply.status == 405 ? "\r\nAllow: GET, HEAD" : "",
                      "\r\nConnection: close\r\n\r\n", head_only ? "" : reply.body);
}

}  // namespace rubato
