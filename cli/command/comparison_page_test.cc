#include "cli/command/comparison_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/http/testing/http_client.h"

namespace rubato {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class ComparisonPageTest : public testing::Test {
 protected:
  ComparisonPageTest() { fs::remove_all(directory_); }
  void Serve(const std::string& listen) {
    auto page = ComparisonPage::Create(
        listen, [this](absl::string_view error) { errors_.emplace_back(error); }, &clock_);
    ASSERT_TRUE(page.ok()) << page.status();
    page_ = *std::move(page);
    const std::string& url = page_->url();
    port_ = std::stoi(url.substr(url.rfind(':') + 1));
  }
  void Record(const std::string& run, const std::string& line) {
    fs::create_directories(Path(run));
    std::ofstream(Path(run) + "/metrics.jsonl", std::ios::app) << line << "\n";
  }
  std::string Path(const std::string& run) const { return absl::StrCat(directory_, "/", run); }

  const std::string directory_ = testing::TempDir() + "comparison_page";
  RealClock clock_;
  std::vector<std::string> errors_;
  std::unique_ptr<ComparisonPage> page_;
  int port_ = 0;
};

TEST_F(ComparisonPageTest, RunsComeAsTheyBegin) {
  Serve("127.0.0.1:0");
  EXPECT_EQ(page_->url(), absl::StrCat("http://127.0.0.1:", port_, "/"));
  const FileDescriptor watcher = ConnectTo(port_);
  Say(watcher, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(HearUntil(watcher, "{\"runs\":[]}\n\n"), HasSubstr("event: all"));
  page_->Begin("sync int8", Path("sync-int8-seed1"));
  page_->Begin("async int8", Path("async-int8-seed1"));
  // The other one has no record yet.
  Record("sync-int8-seed1", R"({"progress":{"t":1}})");
  EXPECT_THAT(HearUntil(watcher, "\"workers\":1}}]}\n\n"), HasSubstr(R"("about":{"name":"sync int8",)"));
  Record("async-int8-seed1", R"({"progress":{"t":2}})");
  EXPECT_THAT(HearUntil(watcher, "\"workers\":1}}]}\n\n"), HasSubstr(R"("about":{"name":"async int8",)"));
  Record("async-int8-seed1", R"({"end":{"t":3,"ok":true}})");
  page_ = nullptr;
  EXPECT_THAT(Hear(watcher), HasSubstr(R"({"end":{)"));
  EXPECT_THAT(errors_, testing::IsEmpty());
}

TEST_F(ComparisonPageTest, WhereOthersConnectItNeedsTheTokenOfItsAddress) {
  Serve("0.0.0.0:0");
  const size_t hash = page_->url().find("#token=");
  ASSERT_NE(hash, std::string::npos) << page_->url();
  const std::string token = page_->url().substr(hash + 7);
  EXPECT_EQ(token.size(), 64u);
  const std::string ask = "GET /events HTTP/1.1\r\nHost: here\r\n";
  const std::string refused = Ask(port_, ask + "\r\n");
  EXPECT_THAT(refused, HasSubstr("401 Unauthorized"));
  EXPECT_THAT(refused, Not(HasSubstr(token)));
  const FileDescriptor watcher = ConnectTo(port_);
  Say(watcher, absl::StrCat(ask, "Authorization: Bearer ", token, "\r\n\r\n"));
  EXPECT_THAT(HearUntil(watcher, "{\"runs\":[]}\n\n"), HasSubstr("200 OK"));
}

TEST_F(ComparisonPageTest, AnAddressThatIsNoneIsNamedWithItsFlag) {
  const auto page = ComparisonPage::Create(
      "here", [](absl::string_view) {}, &clock_);
  EXPECT_EQ(page.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(page.status().message()), HasSubstr("--page: "));
}

}  // namespace
}  // namespace rubato
