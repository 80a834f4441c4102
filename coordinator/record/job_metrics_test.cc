#include "coordinator/record/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rubato::coordinator {
namespace {

using testing::HasSubstr;
using testing::Not;

v1::TaskStatus* AddTask(v1::TaskId::Role role, uint32_t index, v1::TaskStatus::State state, const std::string& address,
                        v1::JobStatus* status) {
  v1::TaskStatus* task = status->add_tasks();
  task->mutable_task()->set_role(role);
  task->mutable_task()->set_index(index);
  task->set_state(state);
  task->set_metrics_address(address);
  return task;
}

v1::JobStatus Status() {
  v1::JobStatus status;
  status.set_job_name("mnist");
  status.set_run_directory("runs/\"a\"");
  status.set_phase(v1::JobStatus::TRAINING);
  status.mutable_plan()->set_generation(2);
  status.set_examples_done(640);
  status.set_seconds_left(-1);
  status.mutable_counts()->set_evicted_total(1);
  AddTask(v1::TaskId::SERVER, 0, v1::TaskStatus::ALIVE, "10.0.0.1:9100", &status)->set_seconds_since_heard(0.5);
  AddTask(v1::TaskId::WORKER, 0, v1::TaskStatus::EVICTED, "10.0.0.2:9100", &status);
  AddTask(v1::TaskId::WORKER, 1, v1::TaskStatus::ALIVE, "", &status)->mutable_progress()->set_step(12);
  return status;
}

std::string PageOf(const v1::JobStatus& status) {
  v1::JobConfig config;
  config.mutable_cluster()->set_lease_seconds(5);
  MetricText text({});
  AddJobMetrics(status, config, &text);
  return text.Take();
}

TEST(JobMetricsTest, ShowsTheJobItsPlanAndItsTasks) {
  const std::string page = PageOf(Status());
  EXPECT_THAT(page, HasSubstr("rubato_job_info{name=\"mnist\",run_directory=\"runs/\\\"a\\\"\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rubato_job_phase{phase=\"TRAINING\"} 1\nrubato_job_phase{phase=\"FINISHING\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_job_examples_total 640\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_job_evicted_total 1\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_plan_generation 2\n"));
  EXPECT_THAT(page, HasSubstr("rubato_job_task_alive{task=\"worker 0\",task_role=\"worker\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("rubato_job_task_silent_seconds{task=\"server 0\",task_role=\"server\"} 0.5\n"));
  EXPECT_THAT(page, Not(HasSubstr("rubato_job_task_silent_seconds{task=\"worker 0\"")));
  EXPECT_THAT(page, HasSubstr("rubato_job_worker_step{worker=\"1\"} 12\n"));
}

TEST(JobMetricsTest, LeavesOutWhatIsNotKnownYet) {
  v1::JobStatus status = Status();
  EXPECT_THAT(PageOf(status), Not(HasSubstr("rubato_job_evaluation_accuracy")));
  EXPECT_THAT(PageOf(status), Not(HasSubstr("rubato_job_left_seconds")));
  EXPECT_THAT(PageOf(status), Not(HasSubstr("rubato_job_gradient")));
  status.set_evaluation_accuracy(0.5);
  status.set_seconds_left(60);
  EXPECT_THAT(PageOf(status), HasSubstr("\nrubato_job_evaluation_accuracy 0.5\n"));
  EXPECT_THAT(PageOf(status), HasSubstr("\nrubato_job_left_seconds 60\n"));
}

TEST(JobMetricsTest, ShowsCheckpointsAndRollbacks) {
  v1::JobStatus status = Status();
  EXPECT_THAT(PageOf(status), HasSubstr("\nrubato_job_checkpoints_total 0\n"));
  EXPECT_THAT(PageOf(status), Not(HasSubstr("rubato_job_checkpoint_age_seconds")));
  status.mutable_counts()->set_checkpoints_total(3);
  status.mutable_counts()->set_rollbacks_total(1);
  status.mutable_checkpoint()->set_last("step150");
  status.mutable_checkpoint()->set_seconds_since_last(12.5);
  EXPECT_THAT(PageOf(status), HasSubstr("\nrubato_job_checkpoints_total 3\n"));
  EXPECT_THAT(PageOf(status), HasSubstr("\nrubato_job_rollbacks_total 1\n"));
  EXPECT_THAT(PageOf(status), HasSubstr("\nrubato_job_checkpoint_age_seconds 12.5\n"));
}

TEST(JobMetricsTest, ARegressionShowsLossAndR2InsteadOfAnAccuracyOfZero) {
  v1::JobStatus status = Status();
  status.set_evaluation_loss(0.25);
  status.set_evaluation_r2(-0.5);
  EXPECT_THAT(PageOf(status), HasSubstr("\nrubato_job_evaluation_loss 0.25\n"));
  EXPECT_THAT(PageOf(status), HasSubstr("\nrubato_job_evaluation_r2 -0.5\n"));
  EXPECT_THAT(PageOf(status), Not(HasSubstr("rubato_job_evaluation_accuracy")));
}

TEST(JobMetricsTest, ABinaryClassifierShowsAucAndCalibration) {
  v1::JobStatus status = Status();
  EXPECT_THAT(PageOf(status), Not(HasSubstr("calibration")));
  status.set_evaluation_auc(0.75);
  status.set_evaluation_calibration(1.25);
  EXPECT_THAT(PageOf(status), HasSubstr("\nrubato_job_evaluation_auc 0.75\n"));
  EXPECT_THAT(PageOf(status), HasSubstr("\nrubato_job_evaluation_calibration_ratio 1.25\n"));
}

TEST(JobMetricsTest, RecallIsShownIfItIsMeasured) {
  v1::JobStatus status = Status();
  EXPECT_THAT(PageOf(status), Not(HasSubstr("recall")));
  status.set_evaluation_recall(0.75);
  EXPECT_THAT(PageOf(status), HasSubstr("\nrubato_job_evaluation_recall 0.75\n"));
}

TEST(JobMetricsTest, TargetsAreTheCoordinatorAndLivingTasksWithAnAddress) {
  EXPECT_EQ(MetricTargets(Status(), "host:9100"),
            "[{\"targets\":[\"host:9100\",\"10.0.0.1:9100\"],\"labels\":{\"rubato_job\":\"mnist\"}}]\n");
}

}  // namespace
}  // namespace rubato::coordinator
