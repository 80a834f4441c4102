#include "cli/capacity/calibration_run.h"

#include "cli/capacity/testing/jobs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

constexpr SimTime kMs = 1'000'000;
constexpr int kSteps = 30;

TraceSpan Span(const std::string& name, const std::string& category, int64_t step, SimTime begin, SimTime length) {
  return {.name = name, .category = category, .begin = begin, .end = begin + length, .step = step};
}

// Steps of 10 ms: an exchange of 3 ms, of which 1 ms at the server, and 7 ms of work. The clocks have nothing in
// common.
std::vector<TaskTrace> Traces() {
  TraceRow trainer = {.name = "trainer"}, batch = {.name = "batch 0 (server 0)"};
  TraceRow partition = {.name = "partition 0"}, messages = {.name = "worker 0, chunk 0"};
  for (int64_t step = 0; step < kSteps; ++step) {
    const SimTime at = step * 10 * kMs, there = 12345 + at;
    trainer.spans.push_back(Span("step", "step", step, at, 10 * kMs));
    trainer.spans.push_back(Span("await fc", "pull", step, at, 3 * kMs));
    trainer.spans.push_back(Span("begin step", "pull", step, at + 5 * kMs, 0));
    trainer.spans.push_back(Span("push fc", "push", step, at + 9 * kMs, kMs));
    TraceSpan exchange = Span("push and pull", "exchange", step, at, 3 * kMs);
    exchange.sent_bytes = exchange.received_bytes = 65 * 16 * 4;
    batch.spans.push_back(exchange);
    TraceSpan receive = Span("receive", "receive", step, there, kMs / 4);
    receive.worker = 0;
    TraceSpan answer = Span("answer", "answer", step, there + kMs / 2, kMs / 2);
    answer.worker = 0;
    partition.spans.push_back(receive);
    partition.spans.push_back(answer);
    TraceSpan wait = Span("wait", "barrier", step, there + kMs / 4, kMs / 4);
    wait.outcome = "OK";
    messages.spans.push_back(Span("queue", "queue", step, there, 0));
    messages.spans.push_back(wait);
  }
  return {{.task = "worker 0", .rows = {trainer, batch}}, {.task = "server 0", .rows = {partition, messages}}};
}

TEST(CalibrationRunTest, PutsWorkersAndServersTracesTogether) {
  const absl::StatusOr<CalibrationRun> run = MakeCalibrationRun("runs/one", SmallJob(), Traces());
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->steps.size(), static_cast<size_t>(kSteps));
  EXPECT_NEAR(run->steps[3].forward[0], 2e-3, 1e-9);
  EXPECT_NEAR(run->steps[3].backward[0], 5e-3, 1e-9);
  EXPECT_NEAR(run->worker_steps_per_second, 100, 1e-6);
  ASSERT_EQ(run->transports.size(), static_cast<size_t>(kSteps));
  EXPECT_EQ(run->transports[0].length, 2 * kMs);
  EXPECT_EQ(run->transports[0].bytes, 2 * 65 * 16 * 4);
  EXPECT_EQ(run->servers.at(0).requests.size(), static_cast<size_t>(kSteps));
}

TEST(CalibrationRunTest, RefusesTracesOfAnotherJob) {
  // Two servers: a batch for each.
  const absl::Status status = MakeCalibrationRun("runs/one", SmallJob({"cluster.servers=2"}), Traces()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("1 batches of chunks"));
}

TEST(CalibrationRunTest, RefusesTracesThatSayTooLittle) {
  std::vector<TaskTrace> few = Traces();
  few[0].rows[0].spans.resize(4 * 5);
  EXPECT_THAT(std::string(MakeCalibrationRun("runs/one", SmallJob(), few).status().message()),
              testing::HasSubstr("traces have 5 whole steps"));
  std::vector<TaskTrace> alone = Traces();
  alone.pop_back();
  EXPECT_THAT(std::string(MakeCalibrationRun("runs/one", SmallJob(), alone).status().message()),
              testing::HasSubstr("no exchange of a worker"));
}

}  // namespace
}  // namespace rubato::capacity
