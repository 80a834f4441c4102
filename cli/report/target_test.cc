#include "cli/report/target.h"

#include "gtest/gtest.h"

namespace rubato {
namespace {

TEST(TargetTest, IsTheOneThatTheConfigHas) {
  v1::EvaluationConfig config;
  EXPECT_FALSE(TargetOf(config).exists());
  config.set_target_accuracy(0.9);
  EXPECT_EQ(TargetOf(config), (Target{Metric::kAccuracy, 0.9}));
  for (const Target& target : {Target{Metric::kAuc, 0.7}, Target{Metric::kRmse, 1.25}, Target{}}) {
    SetTarget(target, &config);
    EXPECT_EQ(TargetOf(config), target) << config.ShortDebugString();
  }
  EXPECT_EQ(config.ByteSizeLong(), 0u);
}

TEST(TargetTest, SaysWhatItIs) {
  EXPECT_EQ(TargetText({}), "no target");
  EXPECT_EQ(TargetText({.value = 0.985}), "accuracy 0.985");
  EXPECT_EQ(ShortTargetText({.value = 0.985}), "98.5 %");
  EXPECT_EQ(ShortTargetText({.metric = Metric::kAuc, .value = 0.7}), "AUC 0.7");
  EXPECT_EQ(ShortTargetText({.metric = Metric::kRmse, .value = 1.25}), "RMSE 1.25");
}

TEST(TargetTest, IsReadFromText) {
  EXPECT_EQ(*ParseTarget("0.9"), (Target{Metric::kAccuracy, 0.9}));
  EXPECT_EQ(*ParseTarget("auc:0.7"), (Target{Metric::kAuc, 0.7}));
  EXPECT_EQ(*ParseTarget("rmse:1.25"), (Target{Metric::kRmse, 1.25}));
  for (const char* none : {"0", "rmse:0"}) EXPECT_EQ(*ParseTarget(none), Target()) << none;
  for (const char* bad : {"", "x", "1.5", "-1", "nan", "auc:1.1", "auc:", "rmse:-1", "rmse:inf", "loss:1"}) {
    const absl::Status status = ParseTarget(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(status.message(), std::string("value \"") + bad +
                                    "\"; allowed: an accuracy or auc:AUC, 0 to 1, rmse:RMSE, or 0 for no target");
  }
}

TEST(TargetTest, IsNeverReachedIfThereIsNone) {
  v1::EvaluationLine line;
  line.set_accuracy(0);
  EXPECT_FALSE(Target().IsReachedBy(line));
  EXPECT_FALSE((Target{Metric::kAuc, 0.5}.IsReachedBy(line))) << "it was not measured";
  line.set_auc(0.5);
  EXPECT_TRUE((Target{Metric::kAuc, 0.5}.IsReachedBy(line)));
}

}  // namespace
}  // namespace rubato
