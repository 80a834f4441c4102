#include "common/http/http_request.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace rubato {
namespace {

int ErrorOf(absl::string_view bytes) { return ParseHttpRequest(bytes)->error; }

TEST(HttpRequestTest, WaitsForTheEndOfTheHead) {
  EXPECT_FALSE(ParseHttpRequest("").has_value());
  EXPECT_FALSE(ParseHttpRequest("GET /metrics HTTP/1.1\r\nHost: a\r\n").has_value());
  EXPECT_EQ(ParseHttpRequest("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")->path, "/metrics");
}

TEST(HttpRequestTest, LeavesOutTheQuery) {
  EXPECT_EQ(ParseHttpRequest("GET /metrics?name[]=a HTTP/1.0\r\n\r\n")->path, "/metrics");
}

TEST(HttpRequestTest, KnowsHead) {
  EXPECT_FALSE(ParseHttpRequest("GET / HTTP/1.1\r\n\r\n")->head_only);
  EXPECT_TRUE(ParseHttpRequest("HEAD / HTTP/1.1\r\n\r\n")->head_only);
}

TEST(HttpRequestTest, RefusesWhatItDoesNotServe) {
  EXPECT_EQ(ErrorOf("POST / HTTP/1.1\r\n\r\n"), 405);
  EXPECT_EQ(ErrorOf("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400);
  EXPECT_EQ(ErrorOf("GET  / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(ErrorOf("\r\n\r\n"), 400);
  EXPECT_EQ(ErrorOf(std::string(3, '\0') + "\r\n\r\n"), 400);
  EXPECT_EQ(ErrorOf(std::string(kHttpHeadMax + 1, 'a')), 431);
}

TEST(HttpRequestTest, FindsHeadersByTheirNamesInAnyCase) {
  const HttpRequest request = *ParseHttpRequest("GET / HTTP/1.1\r\nHOST:  a:1 \r\nx-A: b: c\r\n\r\n");
  EXPECT_EQ(request.error, 0);
  EXPECT_EQ(request.Header("host"), "a:1");
  EXPECT_EQ(request.Header("x-a"), "b: c");
  EXPECT_EQ(request.Header("origin"), "");
  EXPECT_EQ(ErrorOf("GET / HTTP/1.1\r\nno header\r\n\r\n"), 400);
  EXPECT_EQ(ErrorOf("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), 400);
}

TEST(HttpRequestTest, TakesThePostsOfServersThatWantThem) {
  const std::string head = "POST /stop HTTP/1.1\r\nContent-Length: 4\r\n\r\n";
  EXPECT_EQ(ErrorOf(head + "{  }"), 405);
  EXPECT_FALSE(ParseHttpRequest(head + "{  ", 16).has_value());
  const HttpRequest request = *ParseHttpRequest(head + "{  }", 16);
  EXPECT_EQ(request.error, 0);
  EXPECT_TRUE(request.post);
  EXPECT_EQ(request.path, "/stop");
  EXPECT_EQ(request.body, "{  }");
  EXPECT_FALSE(ParseHttpRequest("GET / HTTP/1.1\r\n\r\n", 16)->post);
}

TEST(HttpRequestTest, RefusesBodiesOfNoLengthAndTooLongOnes) {
  const auto error = [](const char* header) {
    return ParseHttpRequest(absl::StrCat("POST / HTTP/1.1\r\n", header, "\r\n\r\n"), 16)->error;
  };
  EXPECT_EQ(error("Content-Length: 17"), 413);
  EXPECT_EQ(error("Content-Length: -1"), 411);
  EXPECT_EQ(error("Host: a"), 411);
  EXPECT_EQ(error("Content-Length: 0\r\nTransfer-Encoding: chunked"), 411);
}

TEST(HttpRequestTest, AStreamHasNoLength) {
  const HttpReply reply = {.content_type = "text/event-stream",
                           .body = "data: 1\n\n",
                           .headers = {"Cache-Control: no-store"},
                           .stream = true};
  EXPECT_EQ(FormatHttpReply(reply, false),
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
            "Connection: close\r\n\r\ndata: 1\n\n");
}

TEST(HttpRequestTest, AnswersWithLengthAndWithoutTheBodyForHead) {
  const HttpReply reply = {.status = 404, .content_type = "text/plain", .body = "no\n"};
  EXPECT_EQ(FormatHttpReply(reply, false),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n");
  EXPECT_EQ(FormatHttpReply(reply, true),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\n");
}

}  // namespace
}  // namespace rubato
