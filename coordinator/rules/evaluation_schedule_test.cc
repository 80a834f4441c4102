#include "coordinator/rules/evaluation_schedule.h"

#include <gtest/gtest.h>

namespace rubato::coordinator {
namespace {

v1::EvaluationResult Result(uint64_t id, double accuracy, const std::string& error = "") {
  v1::EvaluationResult result;
  result.set_evaluation_id(id);
  result.set_accuracy(accuracy);
  result.set_error(error);
  return result;
}

TEST(EvaluationSchedule, IsDueEachTimeAnIntervalHasPassed) {
  EvaluationSchedule schedule(0.5);
  EXPECT_FALSE(schedule.Due(0.49, 10).has_value());
  auto first = schedule.Due(0.51, 10);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->at_step(), 10);
  schedule.OnResult(Result(first->evaluation_id(), 0.5));
  EXPECT_FALSE(schedule.Due(0.99, 20).has_value());
  EXPECT_TRUE(schedule.Due(1.0, 20).has_value());
}

TEST(EvaluationSchedule, AsksForOneAtATime) {
  EvaluationSchedule schedule(1);
  auto first = schedule.Due(1, -1);
  EXPECT_FALSE(schedule.Due(3.5, -1).has_value());
  schedule.OnResult(Result(first->evaluation_id(), 0.5));
  EXPECT_EQ(schedule.Due(3.5, -1)->epoch(), 3.5);
  EXPECT_FALSE(schedule.Due(3.9, -1).has_value());
}

TEST(EvaluationSchedule, ARepeatedOrUnknownResultIsIgnored) {
  EvaluationSchedule schedule(1);
  auto first = schedule.Due(1, -1);
  EXPECT_NE(schedule.OnResult(Result(first->evaluation_id(), 0.5)), nullptr);
  EXPECT_EQ(schedule.OnResult(Result(first->evaluation_id(), 0.6)), nullptr);
  EXPECT_EQ(schedule.OnResult(Result(77, 0.6)), nullptr);
  EXPECT_EQ(schedule.last_result()->accuracy(), 0.5);
}

TEST(EvaluationSchedule, TheFinalOneTakesThePlaceOfAPendingOne) {
  EvaluationSchedule schedule(1);
  auto first = schedule.Due(1, 7);
  auto final = schedule.Final(2);
  EXPECT_EQ(schedule.Final(2).evaluation_id(), final.evaluation_id());
  EXPECT_EQ(schedule.pending()->evaluation_id(), final.evaluation_id());
  EXPECT_EQ(final.at_step(), -1);
  schedule.OnResult(Result(first->evaluation_id(), 0.4));
  EXPECT_FALSE(schedule.FinalDone());
  EXPECT_TRUE(schedule.OnResult(Result(final.evaluation_id(), 0.9))->final);
  EXPECT_TRUE(schedule.FinalDone());
  EXPECT_FALSE(schedule.Due(9, -1).has_value());
}

TEST(EvaluationSchedule, AFailedEvaluationIsNoResult) {
  EvaluationSchedule schedule(1);
  auto first = schedule.Due(1, 7);
  schedule.OnResult(Result(first->evaluation_id(), 0, "out of memory"));
  EXPECT_EQ(schedule.last_result(), nullptr);
  EXPECT_EQ(schedule.pending(), nullptr);
}

TEST(EvaluationSchedule, GoesOnAfterARestart) {
  EvaluationSchedule schedule(1);
  v1::JournalEvaluation record;
  *record.mutable_request() = *schedule.Due(1, 7);
  EvaluationSchedule restarted(1);
  restarted.Restore(record);
  EXPECT_EQ(restarted.pending()->evaluation_id(), record.request().evaluation_id());
  *record.mutable_result() = Result(record.request().evaluation_id(), 0.5);
  restarted.Restore(record);
  EXPECT_EQ(restarted.pending(), nullptr);
  EXPECT_FALSE(restarted.Due(1.5, 7).has_value());
  EXPECT_TRUE(restarted.Due(2, 7).has_value());
}

}  // namespace
}  // namespace rubato::coordinator
