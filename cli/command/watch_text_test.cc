#include "cli/command/watch_text.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Two seconds later each count has grown by as much as `more` says.
StatusReading Reading(int seconds, int64_t more, const std::string& extra = "") {
  StatusReading reading;
  reading.at = absl::UnixEpoch() + absl::Seconds(seconds);
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(absl::StrCat(R"pb(
                                                                           job_name: "mnist"
                                                                           phase: TRAINING
                                                                           lease_seconds: 5
                                                                           plan { generation: 1 mode: SYNC }
                                                                         )pb",
                                                                         extra),
                                                            &reading.status));
  v1::TaskStatus* worker = reading.status.add_tasks();
  worker->mutable_task()->set_role(v1::TaskId::WORKER);
  worker->mutable_task()->set_incarnation(7);
  worker->set_state(v1::TaskStatus::ALIVE);
  worker->set_resident_bytes(200 << 20);
  worker->mutable_progress()->set_step(100 + more);
  worker->mutable_progress()->set_steps_total(100 + more);
  worker->mutable_progress()->set_examples_total(64 * (100 + more));
  worker->mutable_progress()->set_sent_bytes_total((100 + more) << 20);
  for (int64_t count : {90 + more / 2, more / 2}) worker->mutable_progress()->add_staleness_counts(count);
  v1::TaskStatus* server = reading.status.add_tasks();
  server->mutable_task()->set_role(v1::TaskId::SERVER);
  server->mutable_task()->set_incarnation(8);
  server->set_state(v1::TaskStatus::ALIVE);
  server->mutable_server()->set_updates_total(1000 + 10 * more);
  server->mutable_server()->add_clocks()->set_clock(100 + more);
  return reading;
}

TEST(WatchTextTest, TellsRatesBetweenTwoReadings) {
  const std::string text = WatchText(Reading(10, 0), Reading(12, 40));
  // 20 steps, 1280 examples and 20 MiB a second; half of the 40 steps were stale by one; 200 updates.
  EXPECT_THAT(text, ContainsRegex("worker 0 +alive +140 +0 +20 +1280 +0.50 +20.0 MiB/s +0.0 MiB/s +200 MiB"));
  EXPECT_THAT(text, ContainsRegex("server 0 +alive +140 +200 "));
}

TEST(WatchTextTest, ARateIsBetweenHeartbeatsNotReadings) {
  StatusReading now = Reading(12, 40);
  now.status.mutable_tasks(0)->set_seconds_since_heard(0.4);
  EXPECT_THAT(WatchText(Reading(10, 0), now), ContainsRegex("worker 0 +alive +140 +0 +25 "));
  // No heartbeat since: no rate.
  now.status.mutable_tasks(0)->set_seconds_since_heard(2);
  EXPECT_THAT(WatchText(Reading(10, 0), now), ContainsRegex("worker 0 +alive +140 +0 +0"));
}

TEST(WatchTextTest, ThereAreNoRatesForAProcessThatIsNew) {
  StatusReading now = Reading(12, 40);
  now.status.mutable_tasks(0)->mutable_task()->set_incarnation(99);
  EXPECT_THAT(WatchText(Reading(10, 0), now), Not(HasSubstr("1280")));
  EXPECT_THAT(WatchText(std::nullopt, Reading(12, 40)), Not(HasSubstr("1280")));
}

TEST(WatchTextTest, NamesASilentTaskBeforeItIsEvicted) {
  StatusReading now = Reading(12, 40);
  now.status.mutable_tasks(0)->set_seconds_since_heard(3);
  for (const std::string& text : {WatchText(std::nullopt, now), WatchLines(now)}) {
    EXPECT_THAT(text, HasSubstr("worker 0 is silent for 3.0 s; it is evicted after 5 s\n"));
  }
  EXPECT_THAT(WatchText(std::nullopt, now), ContainsRegex("worker 0 +silent 3.0 s"));
}

TEST(WatchTextTest, SaysHowTheLossIsScaledInFp16) {
  StatusReading now = Reading(12, 40);
  EXPECT_THAT(WatchText(std::nullopt, now), Not(HasSubstr("FP16")));
  now.status.mutable_tasks(0)->mutable_progress()->set_loss_scale(1024);
  EXPECT_THAT(WatchText(std::nullopt, now), HasSubstr("\nFP16:\n  worker 0: loss scale 1024, steps skipped: 0\n"));
}

TEST(WatchTextTest, SaysWhoWaitsForWhomAndForHowLong) {
  StatusReading now = Reading(12, 40);
  now.status.mutable_tasks(0)->mutable_progress()->set_waiting_seconds(1.25);
  EXPECT_THAT(WatchLines(now), HasSubstr("worker 0 waits for the servers' answers, for 1.2 s\n"));
  now.status.mutable_tasks(0)->mutable_progress()->set_waiting_for("step 7 waits for worker 1 (server 0)");
  EXPECT_THAT(WatchLines(now), HasSubstr("worker 0 in step 7 waits for worker 1 (server 0), for 1.2 s\n"));
  v1::HeldPull* held = now.status.mutable_tasks(1)->mutable_server()->add_held();
  held->set_waiting_for("worker 1");
  EXPECT_THAT(WatchLines(now), HasSubstr("worker 0 waits for worker 1, for 1.2 s\n"));
  // What every step waits for is no news.
  now.status.mutable_tasks(0)->mutable_progress()->set_waiting_seconds(0.01);
  EXPECT_THAT(WatchLines(now), Not(HasSubstr("waits")));
}

TEST(WatchTextTest, SaysWhomACheckpointWaitsFor) {
  StatusReading now = Reading(12, 40, "checkpoint { in_progress: 'step9' waiting_for: 'server 1' }");
  for (const std::string& text : {WatchText(std::nullopt, now), WatchLines(now)}) {
    EXPECT_THAT(text, HasSubstr("checkpoint step9 is being written, which waits for server 1\n"));
  }
}

TEST(WatchTextTest, ShowsTheLastProblemOfEachTask) {
  StatusReading now = Reading(12, 40);
  now.status.mutable_tasks(0)->set_last_problem("connection to server 0 broke");
  now.status.mutable_tasks(1)->set_state(v1::TaskStatus::EVICTED);
  now.status.mutable_tasks(1)->set_reason("no heartbeat for 5.0 s");
  const std::string text = WatchText(std::nullopt, now);
  EXPECT_THAT(text, HasSubstr("worker 0: connection to server 0 broke\n"));
  EXPECT_THAT(text, HasSubstr("server 0: no heartbeat for 5.0 s\n"));
}

}  // namespace
}  // namespace rubato
