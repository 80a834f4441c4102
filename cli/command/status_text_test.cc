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

TEST(StatusTextTest, SaysWhatIsKnownOfTheGradients) {
  v1::JobStatus status = Status();
  EXPECT_THAT(StatusText(status), Not(HasSubstr("Gradients")));
  status.mutable_gradient_noise()->set_norm(0.25);
  EXPECT_THAT(StatusText(status), HasSubstr("\nGradients: norm 0.25\n"));
  status.mutable_gradient_noise()->set_scale_examples(812.4);
  EXPECT_THAT(StatusText(status), HasSubstr("\nGradients: norm 0.25; noise scale 812 examples\n"));
  status.mutable_gradient_noise()->set_lasting_share(0.031);
  EXPECT_THAT(StatusText(status), HasSubstr(" 812 examples; of the workers' differences 3 % last\n"));
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

TEST(StatusTextTest, SaysWhatTheJobWouldGoBackTo) {
  v1::JobStatus status = Status();
  EXPECT_THAT(StatusText(status), Not(HasSubstr("checkpoint")));
  status.set_term(1);
  status.mutable_checkpoint();
  EXPECT_THAT(StatusText(status), HasSubstr("\nTerm 1; no checkpoint yet\n"));
  status.mutable_checkpoint()->set_in_progress("step1400");
  EXPECT_THAT(StatusText(status), HasSubstr("\nTerm 1; checkpoint step1400 is being written\n"));
  status.mutable_checkpoint()->set_waiting_for("server 1: the disk is full");
  status.mutable_checkpoint()->set_last("step1200");
  status.mutable_checkpoint()->set_last_step(1200);
  status.mutable_checkpoint()->set_seconds_since_last(75);
  status.mutable_checkpoint()->set_rollback_reason("server 0 is lost");
  status.mutable_counts()->set_rollbacks_total(2);
  status.set_term(3);
  EXPECT_THAT(StatusText(status),
              HasSubstr("\nTerm 3; checkpoint step1200, all steps before 1200, complete for 1 min 15 s; checkpoint "
                        "step1400 is being written, which waits for server 1: the disk is full; rollbacks: 2, the last "
                        "because of: server 0 is lost\n"));
}

TEST(StatusTextTest, SaysHowAStoppedJobGoesOn) {
  v1::JobStatus status = Status();
  status.mutable_end()->set_kind(v1::Stop::STOPPED);
  EXPECT_THAT(StatusText(status), Not(HasSubstr("--resume")));
  status.mutable_end()->set_checkpoint("checkpoints/stopped");
  EXPECT_THAT(StatusText(status), HasSubstr("rubato train CONFIG --resume (or rubato run --resume) goes on with it\n"));
}

TEST(StatusTextTest, SaysWhoIsSlowedDown) {
  v1::JobStatus status = Status();
  EXPECT_THAT(StatusText(status), Not(HasSubstr("slowed down")));
  status.mutable_tasks(1)->mutable_progress()->set_slowed("x2.5+sleep=30ms");
  EXPECT_THAT(StatusText(status), HasSubstr("step 44, plan 3, 0 examples, slowed down by x2.5+sleep=30ms"));
}

TEST(StatusTextTest, SaysHowLongAWorkersStepsTake) {
  v1::JobStatus status = Status();
  for (float seconds : {0.25f, 0.5f, 0.125f}) status.mutable_tasks(1)->mutable_progress()->add_work_seconds(seconds);
  EXPECT_THAT(StatusText(status), HasSubstr("0 examples, works 250 ms a step (9 of 10 within 500)"));
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
