#include "cli/capacity/recorded_requests.h"

#include <string>

#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

TraceSpan Span(const std::string& category, SimTime begin, SimTime end, int64_t worker = -1) {
  return {.name = category, .category = category, .begin = begin, .end = end, .step = 5, .worker = worker};
}

TraceSpan Wait(SimTime begin, SimTime end) {
  TraceSpan span = Span("barrier", begin, end);
  span.outcome = "OK";
  return span;
}

TraceSpan Update(SimTime begin, SimTime end, int64_t contributions) {
  TraceSpan span = Span("reduce", begin, end);
  span.chunk = 3;
  span.contributions = contributions;
  return span;
}

// Worker 0 pushes and waits; worker 1 completes the step, is answered, and then worker 0 is.
TaskTrace Server() {
  return {.task = "server 0",
          .rows = {{.name = "partition 0",
                    .spans = {Span("receive", 100, 110, 0), Span("receive", 200, 220, 1), Update(225, 265, 2),
                              Span("answer", 270, 280, 1), Span("answer", 284, 296, 0)}},
                   {.name = "worker 0, chunk 3", .spans = {Span("queue", 90, 100), Wait(110, 284)}},
                   {.name = "worker 1, chunk 3", .spans = {Span("queue", 150, 200), Wait(220, 270)}}}};
}

TEST(RecordedRequestsTest, FollowsARequestFromItsArrivalToItsAnswer) {
  const RecordedServer server = ReadRecordedServer(Server());
  ASSERT_EQ(server.requests.size(), 2u);
  const RecordedRequest& waited = server.requests[0];
  EXPECT_EQ(waited.worker, 0u);
  EXPECT_EQ(waited.first_chunk, 3u);
  EXPECT_EQ(waited.arrived, 90);
  EXPECT_EQ(waited.begun, 100);
  EXPECT_EQ(waited.taken, 110);
  EXPECT_EQ(waited.answered, 284);
  EXPECT_EQ(waited.sent, 296);
  EXPECT_FALSE(waited.at_once);
  const RecordedRequest& last = server.requests[1];
  EXPECT_TRUE(last.at_once);
  EXPECT_EQ(last.others, 40);  // The update.
}

TEST(RecordedRequestsTest, ListsUpdatesAndWhatIsBetweenAnswers) {
  const RecordedServer server = ReadRecordedServer(Server());
  ASSERT_EQ(server.updates.size(), 1u);
  EXPECT_EQ(server.updates[0].chunk, 3u);
  EXPECT_EQ(server.updates[0].contributions, 2);
  EXPECT_EQ(server.updates[0].length, 40);
  ASSERT_EQ(server.wakes.size(), 1u);
  EXPECT_EQ(server.wakes[0].worker, 0u);
  EXPECT_EQ(server.wakes[0].length, 4);
}

TEST(RecordedRequestsTest, LeavesOutWhatIsNotWholeOrGotNoWeights) {
  TaskTrace trace = Server();
  trace.rows[1].spans[1].outcome = "WAITING";
  trace.rows[0].spans.erase(trace.rows[0].spans.begin() + 1);  // The reading of worker 1's request.
  EXPECT_TRUE(ReadRecordedServer(trace).requests.empty());
}

}  // namespace
}  // namespace rubato::capacity
