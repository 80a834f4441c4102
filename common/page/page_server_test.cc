#include "common/page/page_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "common/http/testing/http_client.h"

namespace rubato {
namespace {

using testing::HasSubstr;
using testing::Not;

// Counts how often it was asked.
class FakeSource final : public PageSource {
 public:
  void Refresh() override { ++refreshed_; }
  std::string News() override { return absl::StrCat("{\"news\":", ++news_, "}"); }
  std::string Everything() override {
    ++everything_;
    return "{\"all\":true}";
  }
  HttpReply Answer(const HttpRequest& request) override {
    return {.status = request.post ? 202 : 404, .body = absl::StrCat(request.path, " of ", request.peer, "\n")};
  }

  std::atomic<int> refreshed_ = 0;
  std::atomic<int> news_ = 0;
  std::atomic<int> everything_ = 0;
};

class PageServerTest : public testing::Test {
 protected:
  PageServerTest() {
    auto server = PageServer::Create({.access = {.listen = "127.0.0.1:0", .token = "secret"},
                                      .source = &source_,
                                      .clock = &clock_,
                                      .period = absl::Hours(1)});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    const std::string address = server_->address();
    port_ = std::stoi(address.substr(address.find(':') + 1));
    // The first news are nobody's.
    while (source_.news_ == 0) clock_.Sleep(absl::Milliseconds(1));
  }
  std::string AskFor(const std::string& line, const std::string& headers = "") {
    return Ask(port_, absl::StrCat(line, " HTTP/1.1\r\nHost: localhost:", port_, "\r\n", headers, "\r\n"));
  }

  RealClock clock_;
  FakeSource source_;
  std::unique_ptr<PageServer> server_;
  int port_ = 0;
};

TEST_F(PageServerTest, ThePageIsOneFileThatLoadsNothingElse) {
  const std::string answer = AskFor("GET /");
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_THAT(answer, HasSubstr("text/html"));
  EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_THAT(answer, HasSubstr("</html>"));
  EXPECT_THAT(answer, Not(HasSubstr("https://")));
  EXPECT_THAT(answer, Not(HasSubstr("@STYLE@")));
  EXPECT_LT(answer.size(), 200000u);
}

TEST_F(PageServerTest, NewsAreMadeOnceForAllWhoWatch) {
  std::vector<FileDescriptor> watchers;
  for (int i = 0; i < 3; ++i) {
    watchers.push_back(ConnectTo(port_));
    Say(watchers.back(), "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const std::string first = HearUntil(watchers.back(), "true}\n\n");
    EXPECT_THAT(first, HasSubstr("text/event-stream"));
    EXPECT_THAT(first, HasSubstr("event: all\nid: 1\ndata: {\"all\":true}\n\n"));
  }
  server_->Flush();
  for (const FileDescriptor& watcher : watchers) {
    EXPECT_EQ(HearUntil(watcher, "}\n\n"), "event: news\nid: 2\ndata: {\"news\":2}\n\n");
  }
  EXPECT_EQ(source_.news_, 2);
  EXPECT_EQ(source_.everything_, 1);
  EXPECT_EQ(source_.refreshed_, 2);
  server_->Flush();
  server_ = nullptr;
  EXPECT_EQ(Hear(watchers[0]), "event: news\nid: 3\ndata: {\"news\":3}\n\n");
}

TEST_F(PageServerTest, AsksTheSourceForTheRestOfWhoMay) {
  EXPECT_THAT(AskFor("GET /trace/7/worker-0.json"), HasSubstr("404 Not Found"));
  EXPECT_THAT(AskFor("POST /stop", "Content-Length: 0\r\n"), HasSubstr("401 Unauthorized"));
  const std::string token = "Content-Length: 0\r\nAuthorization: Bearer secret\r\n";
  EXPECT_THAT(AskFor("POST /stop", token), HasSubstr("/stop of 127.0.0.1"));
  EXPECT_THAT(AskFor("POST /stop", token + "Origin: http://attacker.example\r\n"), HasSubstr("403 Forbidden"));
}

}  // namespace
}  // namespace rubato
