#include "cli/command/status_text.h"

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::JobStatus Status() {
  v1::JobStatus status;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        job_name: "mnist"
        phase: TRAINING
        seconds_since_start: 75
        run_directory: "runs/mnist"
        plan {
          generation: 3
          amendment: 1
          mode: SSP
          staleness_bound: 2
          first_step: 40
          members { role: WORKER index: 0 }
          members { role: WORKER index: 1 }
        }
        tasks {
          task { role: SERVER }
          address: "127.0.0.1:1"
          state: ALIVE
          server {
            updates_total: 9
            memory_bytes: 1048576
            clocks { worker: 0 clock: 41 }
            clocks { worker: 1 clock: 43 }
            held { worker: 1 step: 44 waiting_for: "worker 0" }
          }
        }
        tasks {
          task { role: WORKER index: 1 }
          state: ALIVE
          seconds_since_heard: 0.25
          host_name: "host"
          process_id: 77
          progress { step: 44 generation: 3 waiting_for: "step 44 waits for worker 0 (server 0)" waiting_seconds: 2.5 }
        }
        tasks {
          task { role: WORKER index: 2 }
          state: EVICTED
          reason: "no heartbeat for 5.0 s"
        }
      )pb",
      &status));
  return status;
}

TEST(StatusTextTest, SaysModeClocksAndWhoWaitsForWhom) {
  std::string text = StatusText(Status());
  EXPECT_THAT(text, HasSubstr("Job mnist in runs/mnist, for 1 min 15 s\n"));
  EXPECT_THAT(text, HasSubstr("Plan 3.1: SSP(2) from step 40 on; members: worker 0, worker 1\n"));
  EXPECT_THAT(text, HasSubstr("9 updates, 1.0 MiB; clocks: worker 0 at 41, worker 1 at 43"));
  EXPECT_THAT(text, HasSubstr("worker 1 in step 44 waits for worker 0 (server 0), for 2.5 s\n"));
  EXPECT_THAT(text, HasSubstr("server 0 holds step 44 of worker 1, which waits for worker 0\n"));
  EXPECT_THAT(text, HasSubstr("77@host"));
}

TEST(StatusTextTest, SaysHowTheLossIsScaledInFp16) {
  v1::JobStatus status = Status();
  EXPECT_THAT(StatusText(status), Not(HasSubstr("loss scale")));
  status.mutable_tasks(1)->mutable_progress()->set_loss_scale(16777216);
  status.mutable_tasks(1)->mutable_progress()->set_overflow_total(2);
  EXPECT_THAT(StatusText(status), HasSubstr("plan 3, 0 examples, loss scale 16777216, steps skipped: 2\n"));
}

TEST(StatusTextTest, GivesTheReasonOfAnEviction) {
  EXPECT_THAT(StatusText(Status()), HasSubstr("evicted  0.0 s ago"));
  EXPECT_THAT(StatusText(Status()), HasSubstr("no heartbeat for 5.0 s"));
}

TEST(StatusTextTest, AJobWithoutAPlanSaysSo) {
  v1::JobStatus status;
  status.set_phase(v1::JobStatus::STARTING);
  status.set_waiting_for("server 0");
  EXPECT_THAT(StatusText(status), HasSubstr("starting  waits for server 0\nNo plan yet\n"));
  EXPECT_THAT(StatusText(status), Not(HasSubstr("Who waits")));
}

}  // namespace
}  // namespace rubato
