#include "common/page/run_points.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(RunPointsTest, AnUnknownNumberIsNull) {
  v1::ProgressLine line;
  line.set_t(1.5);
  line.set_epoch(0.25);
  line.set_step(40);
  line.set_examples_per_second(1200);
  EXPECT_EQ(ProgressPoint({}, line).dump(), "[1.5,0.25,40.0,null,1200.0,null,null]");
  v1::EvaluationLine evaluation;
  EXPECT_EQ(EvaluationPoint(evaluation).dump(), "[0.0,0.0,0.0,null,null,null,null,null]");
  evaluation.set_r2(0.5);
  evaluation.set_loss(2.25);
  EXPECT_EQ(EvaluationPoint(evaluation).dump(), "[0.0,0.0,0.0,2.25,0.5,null,1.5,null]");
  evaluation.clear_r2();
  evaluation.set_accuracy(0.75);
  evaluation.set_auc(0.875);
  evaluation.set_recall(0.9375);
  EXPECT_EQ(EvaluationPoint(evaluation).dump(), "[0.0,0.0,0.0,2.25,0.75,0.875,null,0.9375]");
}

TEST(RunPointsTest, StalenessIsThatOfThePushesSinceTheLineBefore) {
  v1::ProgressLine before, line;
  for (double count : {10.0, 10.0, 0.0}) before.add_staleness_counts(count);
  for (double count : {10.0, 12.0, 6.0}) line.add_staleness_counts(count);
  EXPECT_EQ(ProgressPoint(before, line)[6], (2 * 1 + 6 * 2) / 8.0);
  EXPECT_EQ(ProgressPoint(line, line)[6], nullptr);
  // After a rollback.
  EXPECT_EQ(ProgressPoint(line, before)[6], 0.5);
}

}  // namespace
}  // namespace rubato
