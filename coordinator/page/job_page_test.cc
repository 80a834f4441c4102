// The page over a runner of this process, and the requests that it makes of it.
#include "coordinator/page/job_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/http/testing/http_client.h"
#include "common/security/operator_token.h"
#include "common/storage/file.h"
#include "coordinator/testing/small_job.h"

namespace rubato::coordinator {
namespace {

using testing::HasSubstr;
using testing::Not;

class JobPageTest : public testing::Test {
 protected:
  JobPageTest() {
    directory_ =
        absl::StrCat(testing::TempDir(), "/page-", testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(directory_);
    config_ = SmallJob();
    config_.set_run_directory(directory_);
  }
  ~JobPageTest() override {
    if (page_ != nullptr) page_->Close();
  }
  void Open() {
    auto page = JobPage::Create({.config = config_, .listen = "127.0.0.1:0", .clock = &clock_});
    ASSERT_TRUE(page.ok()) << page.status();
    page_ = *std::move(page);
    JobRunner::Options options;
    options.config = config_;
    options.config_fingerprint = kConfigFingerprint;
    options.job_fingerprint = 7;
    options.clock = &clock_;
    options.log = &log_;
    options.on_line = [this](const v1::RunRecordLine& line) { page_->OnLine(line); };
    auto runner = JobRunner::Create(std::move(options));
    ASSERT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
    ASSERT_TRUE(page_->Open(runner_.get()).ok());
    token_ = *ReadOperatorToken(directory_);
    port_ = std::stoi(page_->url().substr(page_->url().rfind(':') + 1));
  }
  std::string Get(const std::string& path) {
    return Ask(port_, absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }
  std::string Post(const std::string& path, const std::string& body) {
    return Ask(port_, absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ", token_,
                                   "\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
  }

  std::string directory_;
  v1::JobConfig config_;
  RealClock clock_;
  Logger log_{"coordinator", &clock_};
  std::unique_ptr<JobPage> page_;
  std::unique_ptr<JobRunner> runner_;
  std::string token_;
  int port_ = 0;
};

TEST_F(JobPageTest, ShowsTheJobAndSaysWhere) {
  Open();
  EXPECT_EQ(*ReadFile(directory_ + "/page.address"), absl::StrCat("127.0.0.1:", port_, "\n"));
  EXPECT_THAT(Get("/"), HasSubstr("</html>"));
  FileDescriptor watcher = ConnectTo(port_);
  Say(watcher, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  // Until it was refreshed, which may come together with what there was before.
  const std::string refreshed = "\"phase\":\"STARTING\"";
  std::string all;
  for (std::string more = " "; !more.empty() && all.find(refreshed) == std::string::npos; all += more) {
    more = HearUntil(watcher, "\n\n");
  }
  EXPECT_THAT(all, HasSubstr("event: all\n"));
  EXPECT_THAT(all, HasSubstr("\"controls\":true}\n\n"));
  EXPECT_THAT(all, HasSubstr("\"config\":\"name: \\\"small\\\""));
  EXPECT_THAT(all, Not(HasSubstr(token_)));
  EXPECT_THAT(all, HasSubstr(refreshed));
  page_->Close();
  EXPECT_FALSE(FileExists(directory_ + "/page.address"));
}

TEST_F(JobPageTest, KnowsWhatTheRecordOfAJobThatGoesOnHas) {
  std::filesystem::create_directories(directory_);
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/metrics.jsonl",
                                  "{\"plan\":{\"t\":1,\"reason\":\"earlier\"}}\n{\"plan\":{\"t\"")
                  .ok());
  auto page = JobPage::Create({.config = config_, .listen = "127.0.0.1:0", .clock = &clock_});
  ASSERT_TRUE(page.ok()) << page.status();
  (*page)->News();
  EXPECT_THAT((*page)->Everything(), HasSubstr("\"reason\":\"earlier\""));
}

TEST_F(JobPageTest, RequestsGoToTheJobWithWhoMadeThem) {
  Open();
  EXPECT_THAT(Post("/switch", "{\"mode\":\"ASYNC\"}"), HasSubstr("202 Accepted"));
  EXPECT_THAT(Post("/checkpoint", ""), HasSubstr("202 Accepted"));
  EXPECT_THAT(Post("/trace", "{\"seconds\":5}"), HasSubstr("202 Accepted"));
  EXPECT_THAT(Post("/switch", "{\"mode\":\"FAST\"}"), HasSubstr("400 Bad Request"));
  EXPECT_THAT(Post("/switch", "{\"speed\":1}"), HasSubstr("not a SwitchModeRequest: "));
  EXPECT_THAT(Post("/other", ""), HasSubstr("404 Not Found"));
  EXPECT_THAT(Post("/stop", ""), HasSubstr("202 Accepted"));
  const std::optional<absl::Status> ended = runner_->Wait(absl::Seconds(10));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->message(), "stopped by the operator at 127.0.0.1: on its page");
}

TEST_F(JobPageTest, WithoutTheTokenNothingIsAskedFor) {
  Open();
  token_ = std::string(64, '0');
  for (const char* path : {"/switch", "/checkpoint", "/trace", "/stop"}) {
    EXPECT_THAT(Post(path, "{}"), HasSubstr("401 Unauthorized")) << path;
  }
  EXPECT_FALSE(runner_->Wait(absl::Milliseconds(100)).has_value());
}

TEST_F(JobPageTest, GivesTracesOfTasksAndNoOtherFiles) {
  Open();
  std::filesystem::create_directories(directory_ + "/traces/7");
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/traces/7/worker-0.json", "{\"traceEvents\":[]}").ok());
  EXPECT_THAT(Get("/trace/7/worker-0.json"), HasSubstr("{\"traceEvents\":[]}"));
  EXPECT_THAT(Get("/trace/7/worker-1.json"), HasSubstr("404 Not Found"));
  for (const char* path : {"/trace/7/worker-.json", "/trace/../worker-0.json", "/trace/7/../../job.textproto",
                           "/trace//worker-0.json", "/trace/7/other-0.json", "/job.textproto"}) {
    EXPECT_THAT(Get(path), HasSubstr("404 Not Found")) << path;
  }
}

TEST_F(JobPageTest, IsWhereItWasWhenItsCoordinatorIsStartedAgain) {
  Open();
  const int port = port_;
  page_->Close();
  runner_ = nullptr;
  page_ = nullptr;
  std::filesystem::remove_all(directory_);
  std::filesystem::create_directories(directory_);
  // As one that was killed leaves it.
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/page.address", absl::StrCat("127.0.0.1:", port, "\n")).ok());
  Open();
  EXPECT_EQ(port_, port);
}

TEST_F(JobPageTest, AnAddressThatCannotBeHadIsNamedWithTheField) {
  Open();
  auto second = JobPage::Create({.config = config_, .listen = absl::StrCat("127.0.0.1:", port_), .clock = &clock_});
  ASSERT_TRUE(second.ok()) << second.status();
  const absl::Status opened = (*second)->Open(runner_.get());
  EXPECT_THAT(std::string(opened.message()), HasSubstr("observability.page_address: cannot listen on"));
}

}  // namespace
}  // namespace rubato::coordinator
