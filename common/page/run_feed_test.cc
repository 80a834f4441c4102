#include "common/page/run_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace rubato {
namespace {

using Json = nlohmann::ordered_json;

v1::RunRecordLine Progress(double t) {
  v1::RunRecordLine line;
  line.mutable_progress()->set_t(t);
  line.mutable_progress()->set_step(10 * t);
  line.mutable_progress()->set_loss(t);
  for (uint32_t index : {0, 1}) {
    v1::WorkerTotals* worker = line.mutable_progress()->add_workers();
    worker->set_index(index);
    worker->set_step(10 * t);
    worker->set_compute_seconds(0.5 * t);
    worker->set_staleness_mean(index);
  }
  return line;
}

v1::RunRecordLine Plan(double t, const std::string& reason) {
  v1::RunRecordLine line;
  line.mutable_plan()->set_t(t);
  line.mutable_plan()->set_mode(v1::ASYNC);
  line.mutable_plan()->set_reason(reason);
  return line;
}

TEST(RunFeedTest, NewsAreToldOnceAndEverythingIsWhatWasTold) {
  RunFeed feed({.name = "sync", .directory = "runs/a", .config_text = "name: \"a\"\n"});
  v1::RunRecordLine start;
  start.mutable_start()->set_job("a");
  feed.Add(start);
  feed.Add(Progress(1));
  feed.Add(Plan(1, "operator"));
  EXPECT_EQ(feed.Everything()["points"].size(), 0u);
  const Json news = feed.News();
  EXPECT_EQ(news["start"]["job"], "a");
  EXPECT_EQ(news["points"].dump(), "[[1.0,0.0,10.0,1.0,0.0,null,null]]");
  EXPECT_EQ(news["workers"].dump(), "[[1.0,[[0,10.0,0.0,0.0,0.5,0.0,0.0,0.0],[1,10.0,0.0,0.0,0.5,0.0,0.0,10.0]]]]");
  EXPECT_EQ(news["log"][0]["plan"]["reason"], "operator");
  EXPECT_EQ(news["log"][0]["plan"]["mode"], "ASYNC");
  EXPECT_EQ(feed.News()["points"].size(), 0u);
  const Json all = feed.Everything();
  EXPECT_EQ(all["about"]["name"], "sync");
  for (const char* kind : {"start", "points", "workers", "log"}) EXPECT_EQ(all[kind], news[kind]) << kind;
}

TEST(RunFeedTest, DoesNotGrowWithTheRun) {
  RunFeed feed({});
  for (int t = 1; t <= 5000; ++t) {
    feed.Add(Progress(t));
    v1::RunRecordLine evaluation;
    evaluation.mutable_evaluation()->set_t(t);
    feed.Add(evaluation);
    feed.Add(Plan(t, "again"));
    feed.News();
  }
  const Json all = feed.Everything();
  EXPECT_LE(all["points"].size(), RunFeed::kPointsMax);
  EXPECT_GE(all["points"].size(), RunFeed::kPointsMax / 2);
  EXPECT_LE(all["evaluations"].size(), RunFeed::kPointsMax);
  EXPECT_EQ(all["log"].size(), RunFeed::kLogMax);
  EXPECT_EQ(all["log"].back()["plan"]["t"], 5000.0);
  EXPECT_LE(all["workers"].size(), RunFeed::kWorkerSamplesMax + RunFeed::kRecentSamples);
  // In order, from the beginning to now, the last minute whole.
  EXPECT_EQ(all["workers"][0][0], 1.0);
  double before = 0;
  for (const Json& sample : all["workers"]) {
    EXPECT_GT(sample[0], before);
    before = sample[0];
  }
  for (size_t i = 0; i < RunFeed::kRecentSamples; ++i) {
    EXPECT_EQ(all["workers"][all["workers"].size() - 1 - i][0], 5000.0 - static_cast<double>(i));
  }
  // A point is the mean of what it stands for, and all stand for as much.
  EXPECT_EQ(all["stride"]["points"], 8);
  double sum = 0;
  for (const Json& point : all["points"]) sum += point[3].get<double>();
  EXPECT_NEAR(sum / static_cast<double>(all["points"].size()), 2500, 20);
}

TEST(RunFeedTest, ARollbackTakesBackWhatIsDoneAgain) {
  RunFeed feed({});
  for (int t = 1; t <= 4; ++t) feed.Add(Progress(t));
  feed.News();
  feed.Add(Progress(5));
  v1::RunRecordLine line;
  line.mutable_rollback()->set_t(5.5);
  line.mutable_rollback()->set_step(30);
  feed.Add(line);
  feed.Add(Progress(6));
  const Json news = feed.News();
  EXPECT_EQ(news["points"].size(), 1u);
  EXPECT_EQ(news["log"][0]["rollback"]["step"], 30.0);
  const Json points = feed.Everything()["points"];
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[1][0], 2.0);
  EXPECT_EQ(points[2][0], 6.0);
}

}  // namespace
}  // namespace rubato
