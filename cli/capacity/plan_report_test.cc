#include "cli/capacity/plan_report.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

using testing::HasSubstr;

CapacityPlan MakePlan() {
  CapacityPlan plan;
  plan.config.set_name("job");
  plan.config.mutable_cluster()->set_workers(100);
  plan.config.mutable_cluster()->set_servers(7);
  plan.config.mutable_cluster()->set_partitions_per_server(2);
  plan.config.mutable_consistency()->set_mode(v1::SYNC);
  plan.config.mutable_consistency()->set_quorum(90);
  plan.messages_per_step = 14;
  plan.result.worker_steps_per_second = 500;
  plan.result.worker_steps_error = 5;
  plan.result.step = {.total = 0.2, .computing = 0.05, .barrier = 0.1, .network = 0.03, .server = 0.02, .p99 = 0.4};
  for (uint32_t server = 0; server < 7; ++server)
    plan.result.servers.push_back({.server = server, .link_in = 0.1 * server});
  plan.samples_per_second = 16000;
  plan.bottleneck = {"barrier", "A worker waits.", "Change: a quorum."};
  plan.saturation = {{.workers = 251.7, .resource = "server link in of server 6"}};
  plan.checks.push_back({"runs/one", 1, 20, 21});
  plan.notes.push_back("Calibrated somehow");
  return plan;
}

TEST(PlanReportTest, TextSaysWhatThereIs) {
  const std::string text = FormatPlan(MakePlan());
  for (const char* part :
       {"job: 100 workers, 7 servers of 2 partitions, SYNC, quorum 90", "5.00 +- 1.0 %", "16000", "+5.0 %", "50.0 %",
        "server 6", "2 more, less", "Bottleneck: barrier. A worker waits. Change: a quorum.", "About 252 workers",
        "Note: Calibrated somehow."}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  // The least loaded ones are not named.
  EXPECT_THAT(text, testing::Not(HasSubstr("server 1 ")));
}

TEST(PlanReportTest, JsonHasAllOfIt) {
  const auto json = nlohmann::json::parse(PlanToJson(MakePlan()));
  EXPECT_EQ(json["worker_steps_per_second"], 500);
  EXPECT_EQ(json["worker_steps_per_second_error"], 5);
  EXPECT_EQ(json["step_seconds"]["barrier"], 0.1);
  EXPECT_EQ(json["busy"]["servers"].size(), 7u);
  EXPECT_EQ(json["bottleneck"]["name"], "barrier");
  EXPECT_EQ(json["calibration"][0]["predicted_steps_per_second"], 21);
  EXPECT_EQ(json["saturation"]["resource"], "server link in of server 6");
}

TEST(PlanReportTest, WhatIsNotKnownIsNull) {
  CapacityPlan plan = MakePlan();
  plan.saturation.reset();
  plan.result.worker_steps_error = std::numeric_limits<double>::infinity();
  const auto json = nlohmann::json::parse(PlanToJson(plan));
  EXPECT_TRUE(json["saturation"].is_null());
  EXPECT_TRUE(json["worker_steps_per_second_error"].is_null());
}

}  // namespace
}  // namespace rubato::capacity
