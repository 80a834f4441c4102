#include "common/metrics/task_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "common/http/testing/http_client.h"

namespace rubato {
namespace {

using testing::HasSubstr;

class TaskPageTest : public testing::Test {
 protected:
  TaskPage::Options OptionsFor(const std::string& listen) {
    TaskPage::Options options;
    options.listen = listen;
    options.task.set_role(v1::TaskId::WORKER);
    options.task.set_index(3);
    options.task.set_incarnation(0xabc);
    options.metrics = [](MetricText* text) { text->Counter("rubato_things_total", "Things.", 7); };
    options.health = &health_;
    options.clock = &clock_;
    return options;
  }

  static std::string Get(const TaskPage& page, absl::string_view path, absl::string_view headers = "") {
    return Ask(page.port(), absl::StrCat("GET ", path, " HTTP/1.1\r\n", headers, "\r\n"));
  }

  RealClock clock_;
  Health health_;
};

TEST_F(TaskPageTest, IsNotThereWithoutAnAddress) { EXPECT_EQ(*TaskPage::Create(OptionsFor("")), nullptr); }

TEST_F(TaskPageTest, ShowsTheTasksMetricsAndItsProcess) {
  auto page = TaskPage::Create(OptionsFor("127.0.0.1:0"));
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string answer = Get(**page, "/metrics");
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(answer, HasSubstr("rubato_things_total{role=\"worker\",index=\"3\"} 7\n"));
  EXPECT_THAT(answer, HasSubstr("incarnation=\"0000000000000abc\"} 1\n"));
  EXPECT_THAT(answer, HasSubstr("process_resident_memory_bytes{role=\"worker\",index=\"3\"} "));
  EXPECT_THAT(Get(**page, "/other"), HasSubstr("404 Not Found"));
}

TEST_F(TaskPageTest, ManyScrapesMeasureOnce) {
  FakeClock clock;
  TaskPage::Options options = OptionsFor("127.0.0.1:0");
  options.clock = &clock;
  std::atomic<int> measured = 0;
  options.metrics = [&](MetricText* text) { text->Counter("rubato_things_total", "Things.", ++measured); };
  auto page = TaskPage::Create(options);
  ASSERT_TRUE(page.ok()) << page.status();
  for (int i = 0; i < 50; ++i)
    EXPECT_THAT(Get(**page, "/metrics"), HasSubstr("rubato_things_total{role=\"worker\",index=\"3\"} 1\n"));
  EXPECT_EQ(measured, 1);
}

TEST_F(TaskPageTest, ProbesSeeWhetherTheTaskServes) {
  auto page = TaskPage::Create(OptionsFor("127.0.0.1:0"));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(Get(**page, "/healthz"), HasSubstr("503 Service Unavailable"));
  health_.SetServing(true);
  EXPECT_THAT(Get(**page, "/healthz"), HasSubstr("200 OK"));
  EXPECT_THAT(Get(**page, "/metrics"), HasSubstr("rubato_task_serving{role=\"worker\",index=\"3\"} 1\n"));
}

TEST_F(TaskPageTest, WithATokenOnlyProbesNeedNone) {
  TaskPage::Options options = OptionsFor("0.0.0.0:0");
  options.token = "secret";
  options.other = [](const HttpRequest&) { return HttpReply{.body = "where tasks are\n"}; };
  auto page = TaskPage::Create(std::move(options));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(Get(**page, "/healthz"), HasSubstr("503 Service Unavailable"));
  for (const char* path : {"/metrics", "/targets"}) {
    for (const char* wrong : {"", "Authorization: secret\r\n", "Authorization: Bearer secre\r\n",
                              "Authorization: Bearer \r\n", "Authorization: Basic secret\r\n"}) {
      const std::string answer = Get(**page, path, wrong);
      EXPECT_THAT(answer, HasSubstr("401 Unauthorized")) << path << wrong;
      EXPECT_THAT(answer, HasSubstr("WWW-Authenticate: Bearer\r\n")) << path << wrong;
      EXPECT_THAT(answer, testing::Not(HasSubstr("rubato_things_total"))) << path << wrong;
      EXPECT_THAT(answer, testing::Not(HasSubstr("where tasks are"))) << path << wrong;
    }
  }
  constexpr char kRight[] = "Authorization: Bearer secret\r\n";
  EXPECT_THAT(Get(**page, "/metrics", kRight), HasSubstr("rubato_things_total"));
  // Somebody else at the same time.
  EXPECT_THAT(Get(**page, "/metrics"), HasSubstr("401 Unauthorized"));
  EXPECT_THAT(Get(**page, "/targets", kRight), HasSubstr("where tasks are"));
}

TEST_F(TaskPageTest, LeavesAWildcardOutOfItsAddress) {
  auto page = TaskPage::Create(OptionsFor("0.0.0.0:0"));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ((*page)->address(), absl::StrCat(":", (*page)->port()));
  auto local = TaskPage::Create(OptionsFor("127.0.0.1:0"));
  EXPECT_EQ((*local)->address(), absl::StrCat("127.0.0.1:", (*local)->port()));
}

TEST_F(TaskPageTest, APortInUseIsNamedWithTheFlag) {
  auto page = TaskPage::Create(OptionsFor("127.0.0.1:0"));
  auto second = TaskPage::Create(OptionsFor((*page)->address()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("--metrics_listen: cannot listen on"));
}

}  // namespace
}  // namespace rubato
