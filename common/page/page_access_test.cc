#include "common/page/page_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace rubato {
namespace {

using testing::HasSubstr;

constexpr char kLocal[] = "127.0.0.1:8080";
constexpr char kOpen[] = "0.0.0.0:8080";
const std::string kToken(64, 'a');

HttpRequest Request(const std::string& path, bool post, std::map<std::string, std::string> headers) {
  HttpRequest request;
  request.path = path;
  request.post = post;
  request.headers = std::move(headers);
  return request;
}
HttpRequest Get(const std::string& path, const std::string& host) { return Request(path, false, {{"host", host}}); }

// 0: it is answered.
int StatusOf(const PageAccess& access, const HttpRequest& request) {
  const std::optional<HttpReply> refusal = Refusal(access, request);
  return refusal ? refusal->status : 0;
}

TEST(PageAccessTest, OnLoopbackEverybodyReadsWhoCallsItSo) {
  const PageAccess access = {kLocal, kToken};
  EXPECT_EQ(StatusOf(access, Get("/", "127.0.0.1:8080")), 0);
  EXPECT_EQ(StatusOf(access, Get("/events", "localhost:8080")), 0);
  // Through a forwarded port.
  EXPECT_EQ(StatusOf(access, Get("/events", "localhost:9000")), 0);
  EXPECT_EQ(StatusOf(access, Get("/events", "attacker.example:8080")), 403);
  EXPECT_EQ(StatusOf(access, Get("/", "")), 403);
}

TEST(PageAccessTest, ElsewhereReadingNeedsTheToken) {
  const PageAccess access = {kOpen, kToken};
  EXPECT_EQ(StatusOf(access, Get("/", "host:8080")), 0);
  EXPECT_EQ(StatusOf(access, Get("/events", "host:8080")), 401);
  EXPECT_EQ(StatusOf(access, Request("/events", false, {{"authorization", "Bearer " + kToken}})), 0);
}

TEST(PageAccessTest, EveryRequestNeedsTheTokenAndSaysOnlyThatItIsWrong) {
  const PageAccess access = {kLocal, kToken};
  const auto post = [&](const std::string& authorization) {
    return Request("/stop", true, {{"host", kLocal}, {"authorization", authorization}});
  };
  EXPECT_EQ(StatusOf(access, post("Bearer " + kToken)), 0);
  EXPECT_EQ(StatusOf(access, Request("/stop", true, {{"host", kLocal}})), 401);
  for (const std::string& wrong :
       {std::string(), kToken, std::string("Bearer "), "Bearer " + kToken + "a", "Basic " + kToken}) {
    const std::optional<HttpReply> refusal = Refusal(access, post(wrong));
    ASSERT_TRUE(refusal.has_value()) << wrong;
    EXPECT_EQ(refusal->status, 401) << wrong;
    EXPECT_THAT(refusal->body, testing::Not(HasSubstr(kToken)));
  }
  EXPECT_EQ(StatusOf({kLocal}, post("Bearer ")), 403);
}

TEST(PageAccessTest, OtherSitesAskForNothing) {
  const PageAccess access = {kLocal, kToken};
  const auto from = [&](const std::string& origin) {
    return Request("/stop", true, {{"host", kLocal}, {"authorization", "Bearer " + kToken}, {"origin", origin}});
  };
  EXPECT_EQ(StatusOf(access, from("http://127.0.0.1:8080")), 0);
  EXPECT_EQ(StatusOf(access, from("http://127.0.0.1:9")), 403);
  EXPECT_EQ(StatusOf(access, from("http://attacker.example")), 403);
  EXPECT_EQ(StatusOf(access, from("null")), 403);
}

}  // namespace
}  // namespace rubato
