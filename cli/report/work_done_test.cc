#include "cli/report/work_done.h"

#include "gtest/gtest.h"

namespace rubato {
namespace {

v1::ProgressLine Progress(v1::Mode mode, double epoch, double step, double worker_steps) {
  v1::ProgressLine line;
  line.set_mode(mode);
  line.set_epoch(epoch);
  line.set_step(step);
  line.set_examples(epoch * 1000);
  line.add_staleness_counts(worker_steps / 2);
  line.add_staleness_counts(worker_steps / 2);
  return line;
}

RunRecord TwoWorkers(v1::Mode mode) {
  RunRecord record;
  record.start.emplace().set_train_examples(1000);
  record.progress = {Progress(mode, 0.5, 10, 18), Progress(mode, 1, 20, 38), Progress(mode, 2, 40, 78)};
  return record;
}

v1::EvaluationLine At(double epoch) {
  v1::EvaluationLine line;
  line.set_epoch(epoch);
  return line;
}

TEST(WorkDoneTest, InSyncAStepIsAnUpdate) {
  const WorkDone work = WorkAt(TwoWorkers(v1::SYNC), At(1));
  EXPECT_EQ(work.samples, 1000);
  EXPECT_EQ(work.updates, 20);
}

TEST(WorkDoneTest, OtherwiseEveryWorkersStepIsOne) {
  EXPECT_EQ(WorkAt(TwoWorkers(v1::ASYNC), At(1)).updates, 38);
  EXPECT_EQ(WorkAt(TwoWorkers(v1::SSP), At(1)).updates, 38);
}

TEST(WorkDoneTest, BetweenTwoLinesItIsInProportion) {
  EXPECT_EQ(WorkAt(TwoWorkers(v1::SYNC), At(0.25)).updates, 5);
  EXPECT_EQ(WorkAt(TwoWorkers(v1::ASYNC), At(1.5)).updates, 58);
  EXPECT_EQ(WorkAt(TwoWorkers(v1::ASYNC), At(3)).updates, 78);
}

TEST(WorkDoneTest, AModeThatWasChangedCountsForWhatItDid) {
  RunRecord record = TwoWorkers(v1::SYNC);
  record.progress[2].set_mode(v1::ASYNC);
  EXPECT_EQ(WorkAtEnd(record).updates, 20 + 40);
}

TEST(WorkDoneTest, AfterARollbackWorkersCountFromZeroAgain) {
  RunRecord record = TwoWorkers(v1::ASYNC);
  record.progress[2] = Progress(v1::ASYNC, 2, 40, 36);
  EXPECT_EQ(WorkAtEnd(record).updates, 38 + 36);
}

TEST(WorkDoneTest, AtTheEndItIsTheLastLines) {
  const WorkDone work = WorkAtEnd(TwoWorkers(v1::ASYNC));
  EXPECT_EQ(work.samples, 2000);
  EXPECT_EQ(work.updates, 78);
}

TEST(WorkDoneTest, SaysNothingThatTheRecordDoesNotSay) {
  EXPECT_FALSE(WorkAtEnd(RunRecord()).updates.has_value());
  EXPECT_FALSE(WorkAt(RunRecord(), At(1)).samples.has_value());
  EXPECT_FALSE(WorkAt(RunRecord(), At(1)).updates.has_value());
  EXPECT_FALSE(WorkAt(TwoWorkers(v1::SYNC), At(0)).samples.has_value());
}

}  // namespace
}  // namespace rubato
