#include "common/http/http_request.h"

#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace rubato {
namespace {

absl::string_view Reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Payload Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

// The lines after the first one. False: one of them is no header.
bool ParseHeaders(absl::string_view lines, HttpRequest* request) {
  for (const absl::string_view line : absl::StrSplit(lines, "\r\n", absl::SkipEmpty())) {
    const size_t colon = line.find(':');
    // A name with a space before the colon is read differently by different programs.
    if (colon == absl::string_view::npos || colon == 0 || line.substr(0, colon).find(' ') != absl::string_view::npos) {
      return false;
    }
    request->headers[absl::AsciiStrToLower(line.substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return true;
}

// False: there is more of the body to come.
bool TakeBody(absl::string_view bytes, size_t body_max, HttpRequest* request) {
  uint64_t length = 0;
  if (!absl::SimpleAtoi(request->Header("content-length"), &length) || !request->Header("transfer-encoding").empty()) {
    request->error = 411;
  } else if (length > body_max) {
    request->error = 413;
  } else if (bytes.size() < length) {
    return false;
  } else {
    request->body = std::string(bytes.substr(0, length));
  }
  return true;
}

}  // namespace

absl::string_view HttpRequest::Header(const std::string& name) const {
  const auto header = headers.find(name);
  return header == headers.end() ? absl::string_view() : header->second;
}

std::optional<HttpRequest> ParseHttpRequest(absl::string_view bytes, size_t body_max) {
  HttpRequest request;
  const size_t head_end = bytes.find("\r\n\r\n");
  if (head_end == absl::string_view::npos || head_end > kHttpHeadMax) {
    if (bytes.size() <= kHttpHeadMax) return std::nullopt;
    request.error = 431;
    return request;
  }
  const size_t line_end = bytes.find("\r\n");
  const absl::string_view line = bytes.substr(0, line_end);
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || !absl::StartsWith(words[2], "HTTP/1.") || !absl::StartsWith(words[1], "/") ||
      !ParseHeaders(bytes.substr(line_end, head_end - line_end), &request)) {
    request.error = 400;
    return request;
  }
  request.path = std::string(words[1].substr(0, words[1].find('?')));
  request.head_only = words[0] == "HEAD";
  request.post = words[0] == "POST" && body_max > 0;
  if (request.post) {
    if (!TakeBody(bytes.substr(head_end + 4), body_max, &request)) return std::nullopt;
  } else if (words[0] != "GET" && words[0] != "HEAD") {
    request.error = 405;
  }
  return request;
}

std::string FormatHttpReply(const HttpReply& reply, bool head_only) {
  std::string text = absl::StrCat("HTTP/1.1 ", reply.status, " ", Reason(reply.status),
                                  "\r\nContent-Type: ", reply.content_type, "\r\n");
  if (!reply.stream) absl::StrAppend(&text, "Content-Length: ", reply.body.size(), "\r\n");
  if (reply.status == 405) absl::StrAppend(&text, "Allow: GET, HEAD\r\n");
  for (const std::string& header : reply.headers) absl::StrAppend(&text, header, "\r\n");
  absl::StrAppend(&text, "Connection: close\r\n\r\n", head_only ? "" : reply.body);
  return text;
}

}  // namespace rubato
