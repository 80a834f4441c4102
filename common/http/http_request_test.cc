#include "common/http/http_request.h"

#include <gtest/gtest.h>

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

TEST(HttpRequestTest, AnswersWithLengthAndWithoutTheBodyForHead) {
  const HttpReply reply = {.status = 404, .content_type = "text/plain", .body = "no\n"};
  EXPECT_EQ(FormatHttpReply(reply, false),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n");
  EXPECT_EQ(FormatHttpReply(reply, true),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\n");
}

}  // namespace
}  // namespace rubato
