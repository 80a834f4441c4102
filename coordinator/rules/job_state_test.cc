#include "coordinator/rules/job_state.h"

#include <gtest/gtest.h>

#include "coordinator/testing/small_job.h"

namespace rubato::coordinator {
namespace {

// What mode policies are told.
class JobSnapshotTest : public testing::Test {
 protected:
  JobSnapshotTest() : job_({SmallJob(), kConfigFingerprint, 7, now_}, {}) {
    job_.train_examples = kTrainExamples;
    job_.training_began = true;
    job_.training_start = now_;
    job_.progress.StartInterval(now_);
    for (uint32_t index : {0, 1}) job_.membership.Register(WorkerTask(index), v1::Register(), "", now_);
  }
  void Beat(uint32_t index, const v1::WorkerProgress& progress) {
    job_.membership.Hear(WorkerTask(index), now_)->progress = progress;
    job_.progress.OnHeartbeat(WorkerTask(index), progress);
  }

  absl::Time now_ = absl::FromUnixSeconds(1000000);
  JobState job_;
};

TEST_F(JobSnapshotTest, HasEachWorkersStepTimeAndWaits) {
  v1::WorkerProgress progress;
  progress.set_step(8);
  progress.set_generation(2);
  progress.set_mean_step_seconds(0.25);
  for (float seconds : {0.125f, 0.5f}) progress.add_work_seconds(seconds);
  for (uint32_t examples : {10u, 40u}) progress.add_work_examples(examples);
  progress.set_compute_seconds_total(3);
  progress.set_pull_wait_seconds_total(1);
  progress.set_waiting_seconds(0.5);
  Beat(1, progress);
  const JobSnapshot snapshot = job_.Snapshot(now_ + absl::Seconds(10));
  EXPECT_EQ(snapshot.step, 8);
  EXPECT_EQ(snapshot.seconds, 10);
  ASSERT_EQ(snapshot.workers.size(), 2u);
  EXPECT_EQ(snapshot.workers[0].mean_step_seconds, 0);
  EXPECT_EQ(snapshot.workers[1].index, 1u);
  EXPECT_EQ(snapshot.workers[1].step, 8);
  EXPECT_EQ(snapshot.workers[1].generation, 2u);
  EXPECT_EQ(snapshot.workers[1].mean_step_seconds, 0.25);
  EXPECT_EQ(snapshot.workers[1].work_seconds, (std::vector<double>{0.125, 0.5}));
  EXPECT_EQ(snapshot.workers[1].work_rate, 80);
  EXPECT_EQ(snapshot.workers[1].waiting_share, 0.25);
  EXPECT_EQ(snapshot.workers[1].waiting_seconds, 0.5);
  EXPECT_EQ(snapshot.waiting_share, 0.25);
}

TEST_F(JobSnapshotTest, GradientsAreKnownInSyncOfSeveralWorkers) {
  v1::GradientMoments moments;
  moments.set_updates(20);
  moments.set_mean_square(20 * 4);
  job_.gradient_noise = GradientNoise(1);
  job_.gradient_noise.OnHeartbeat(ServerTask(0), moments);
  EXPECT_EQ(job_.Snapshot(now_).gradients.steps, 20);
  EXPECT_FALSE(job_.RecentGradientNoise().has_norm()) << "there is no plan";
  job_.held_plan.set_mode(v1::SYNC);
  for (uint32_t index : {0, 1}) *job_.held_plan.add_members() = WorkerTask(index);
  EXPECT_EQ(job_.RecentGradientNoise().norm(), 2);
  EXPECT_EQ(job_.TakeInterval(now_ + absl::Seconds(1)).gradient_noise.norm(), 2);
  job_.held_plan.set_mode(v1::ASYNC);
  EXPECT_FALSE(job_.RecentGradientNoise().has_norm());
}

TEST_F(JobSnapshotTest, StalenessIsTheMeanOverAllSteps) {
  v1::WorkerProgress progress;
  for (int64_t count : {1, 0, 3}) progress.add_staleness_counts(count);
  Beat(0, progress);
  EXPECT_EQ(job_.Snapshot(now_).mean_staleness, 1.5);
  EXPECT_EQ(job_.Snapshot(now_).pushes, 4);
  EXPECT_EQ(job_.Snapshot(now_).staleness_sum, 6);
}

TEST_F(JobSnapshotTest, LossAndAccuracyAreAbsentUntilTheyAreMeasured) {
  EXPECT_FALSE(job_.Snapshot(now_).training_loss.has_value());
  EXPECT_FALSE(job_.Snapshot(now_).evaluation.has_value());
  job_.progress.TakeInterval(now_ + absl::Seconds(1));
  EXPECT_FALSE(job_.Snapshot(now_).training_loss.has_value()) << "there was no example";
  v1::WorkerProgress progress;
  progress.set_steps_total(1);
  progress.set_examples_total(10);
  progress.set_loss_total(5);
  progress.set_correct_total(4);
  Beat(0, progress);
  job_.progress.TakeInterval(now_ + absl::Seconds(2));
  v1::EvaluationResult result;
  result.set_evaluation_id(job_.evaluations.Final(1).evaluation_id());
  result.set_loss(0.75);
  result.set_accuracy(0.5);
  job_.evaluations.OnResult(result);
  const JobSnapshot snapshot = job_.Snapshot(now_ + absl::Seconds(2));
  EXPECT_EQ(snapshot.epoch, 0.1);
  EXPECT_EQ(snapshot.examples_per_second, 5);
  EXPECT_EQ(snapshot.training_loss, 0.5);
  EXPECT_EQ(snapshot.training_accuracy, 0.4);
  ASSERT_TRUE(snapshot.evaluation.has_value());
  EXPECT_EQ(snapshot.evaluation->loss, 0.75);
  EXPECT_EQ(snapshot.evaluation->accuracy, 0.5);
}

}  // namespace
}  // namespace rubato::coordinator
