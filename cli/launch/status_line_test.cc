#include "cli/launch/status_line.h"

#include "gtest/gtest.h"

namespace rubato {
namespace {

v1::JobStatus Training() {
  v1::JobStatus status;
  status.set_phase(v1::JobStatus::TRAINING);
  status.set_step(120);
  status.set_epoch(0.5);
  status.set_epochs_total(3);
  status.set_examples_per_second(10240.4);
  status.set_training_loss(0.41234);
  status.set_evaluation_accuracy(0.9712);
  status.set_mean_staleness(1.25);
  status.set_waiting_share(0.124);
  status.set_seconds_left(80);
  status.mutable_plan()->set_mode(v1::SSP);
  status.mutable_plan()->set_staleness_bound(2);
  return status;
}

TEST(StatusLineTest, SaysWhereTrainingStands) {
  EXPECT_EQ(StatusLine(Training()),
            "step 120  epoch 0.50/3  10240 ex/s  loss 0.4123  accuracy 97.12 %  SSP(2)  staleness 1.25  waiting 12 %  "
            "1 min 20 s left");
}

TEST(StatusLineTest, LeavesOutWhatIsNotKnown) {
  v1::JobStatus status = Training();
  status.clear_evaluation_accuracy();
  status.set_seconds_left(-1);
  EXPECT_EQ(StatusLine(status),
            "step 120  epoch 0.50/3  10240 ex/s  loss 0.4123  SSP(2)  staleness 1.25  waiting 12 %");
}

TEST(StatusLineTest, OfClientsThatTellNothingThereIsNoEpochSpeedOrLoss) {
  v1::JobStatus status = Training();
  status.clear_evaluation_accuracy();
  status.set_epochs_total(0);
  status.set_seconds_left(-1);
  EXPECT_EQ(StatusLine(status), "step 120  epoch 0.50  10240 ex/s  loss 0.4123  SSP(2)  staleness 1.25  waiting 12 %");
  status.set_epoch(0);
  status.set_examples_per_second(0);
  status.set_training_loss(0);
  EXPECT_EQ(StatusLine(status), "step 120  SSP(2)  staleness 1.25  waiting 12 %");
}

TEST(StatusLineTest, ARegressionShowsLossAndR2InsteadOfAnAccuracyOfZero) {
  v1::JobStatus status = Training();
  status.clear_evaluation_accuracy();
  status.set_evaluation_loss(0.5);
  status.set_evaluation_r2(0.93125);
  status.set_seconds_left(-1);
  EXPECT_EQ(StatusLine(status),
            "step 120  epoch 0.50/3  10240 ex/s  loss 0.4123  held-out loss 0.5000  R2 0.9313  SSP(2)  staleness 1.25  "
            "waiting 12 %");
}

TEST(StatusLineTest, ABinaryClassifierShowsAucAndCalibration) {
  v1::JobStatus status = Training();
  status.set_evaluation_accuracy(0.5);
  status.set_evaluation_auc(0.75);
  status.set_evaluation_calibration(1.043);
  status.set_seconds_left(-1);
  EXPECT_EQ(StatusLine(status),
            "step 120  epoch 0.50/3  10240 ex/s  loss 0.4123  accuracy 50.00 %  AUC 0.7500  calibration 1.04  SSP(2)  "
            "staleness 1.25  waiting 12 %");
}

TEST(StatusLineTest, SaysAtHowManyRecallWasMeasured) {
  v1::JobStatus status = Training();
  status.set_evaluation_accuracy(0.5);
  status.set_evaluation_recall(0.8125);
  status.set_evaluation_recall_at(10);
  EXPECT_NE(StatusLine(status).find("accuracy 50.00 %  recall@10 81.25 %  SSP(2)"), std::string::npos)
      << StatusLine(status);
}

TEST(StatusLineTest, SaysWhatAStartingJobWaitsFor) {
  v1::JobStatus status;
  status.set_phase(v1::JobStatus::STARTING);
  status.set_waiting_for("server 1");
  EXPECT_EQ(StatusLine(status), "starting  waits for server 1");
}

TEST(StatusLineTest, FormatsDurations) {
  EXPECT_EQ(FormatSeconds(59.4), "59 s");
  EXPECT_EQ(FormatSeconds(59.6), "1 min 0 s");
  EXPECT_EQ(FormatSeconds(7500), "2 h 5 min");
  EXPECT_EQ(FormatSeconds(-1), "unknown");
  EXPECT_EQ(FormatSeconds(1e300), "unknown");
}

TEST(StatusLineTest, CutsWholeCharacters) {
  EXPECT_EQ(CutToColumns("größer", 4), "größ");
  EXPECT_EQ(CutToColumns("größer", 6), "größer");
  EXPECT_EQ(CutToColumns("größer", 0), "");
}

}  // namespace
}  // namespace rubato
