// What CoordinatorCore has recorded for the operator, and what it tells of its tasks.
#include <limits>

#include "coordinator/testing/core_harness.h"

namespace rubato::coordinator {
namespace {

class CoreTraceTest : public CoreHarness {
 protected:
  CoreTraceTest() { Create(SmallJob()); }

  absl::StatusOr<v1::TraceJobReply> Trace(double seconds) {
    v1::TraceJobRequest request;
    request.set_seconds(seconds);
    v1::TraceJobReply reply;
    absl::StatusOr<Actions> actions = core_->RequestTrace(request, &reply, now_);
    if (!actions.ok()) return actions.status();
    Do(*actions);
    return reply;
  }
};

TEST_F(CoreTraceTest, TellsServersAndWorkers) {
  StartJob();
  absl::StatusOr<v1::TraceJobReply> reply = Trace(2.5);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->tasks_size(), 4);
  for (const v1::TaskId& task : {ServerTask(0), ServerTask(1), WorkerTask(0), WorkerTask(1)}) {
    EXPECT_EQ(Last(task).record_trace().id(), reply->id()) << TaskName(task);
    EXPECT_EQ(Last(task).record_trace().seconds(), 2.5);
  }
  absl::StatusOr<v1::TraceJobReply> next = Trace(1);
  ASSERT_TRUE(next.ok());
  EXPECT_GT(next->id(), reply->id());
}

TEST_F(CoreTraceTest, RefusesATimeOutOfRangeAndAJobThatDoesNotTrain) {
  EXPECT_EQ(Trace(1).status().code(), absl::StatusCode::kFailedPrecondition);
  StartJob();
  for (double seconds : {0.0, -1.0, 601.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(Trace(seconds).status().code(), absl::StatusCode::kInvalidArgument) << seconds;
  }
  EXPECT_TRUE(Contains(std::string(Trace(601).status().message()), "seconds: value 601; allowed: above 0, up to 600"));
}

TEST_F(CoreTraceTest, StatusHasWhatHeartbeatsSayOfTheProcess) {
  StartJob();
  v1::TaskMessage message;
  *message.mutable_task() = ServerTask(1);
  message.mutable_heartbeat()->set_resident_bytes(4096);
  message.mutable_heartbeat()->set_last_problem("the disk is slow");
  message.mutable_heartbeat()->mutable_trace()->set_id(7);
  Deliver(message);
  const v1::JobStatus status = core_->Status(now_);
  EXPECT_EQ(status.lease_seconds(), 5);
  for (const v1::TaskStatus& task : status.tasks()) {
    if (!SameTask(task.task(), ServerTask(1))) continue;
    EXPECT_EQ(task.resident_bytes(), 4096);
    EXPECT_EQ(task.last_problem(), "the disk is slow");
    EXPECT_EQ(task.trace().id(), 7u);
  }
}

}  // namespace
}  // namespace rubato::coordinator
