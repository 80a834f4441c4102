#include "coordinator/page/status_json.h"

#include <gtest/gtest.h>

namespace rubato::coordinator {
namespace {

TEST(StatusJsonTest, HasThePlanAndWhoWaitsForWhom) {
  v1::JobStatus status;
  status.set_phase(v1::JobStatus::TRAINING);
  status.set_step(40);
  EXPECT_EQ(StatusJson(status)["plan"], nullptr);
  status.mutable_plan()->set_generation(2);
  status.mutable_plan()->set_mode(v1::SSP);
  status.mutable_plan()->set_staleness_bound(3);
  status.mutable_plan()->add_members()->set_index(1);
  v1::TaskStatus* worker = status.add_tasks();
  worker->mutable_task()->set_role(v1::TaskId::WORKER);
  worker->mutable_task()->set_index(1);
  worker->set_state(v1::TaskStatus::ALIVE);
  worker->mutable_progress()->set_waiting_for("step 7 waits for worker 0 (server 0)");
  worker->mutable_progress()->set_waiting_seconds(0.25);
  // Larger than a number of JavaScript.
  worker->mutable_trace()->set_id(uint64_t{1} << 60);
  v1::TaskStatus* server = status.add_tasks();
  server->mutable_task()->set_role(v1::TaskId::SERVER);
  server->set_state(v1::TaskStatus::ALIVE);
  server->mutable_server()->set_updates_total(99);
  v1::HeldPull* held = server->mutable_server()->add_held();
  held->set_worker(1);
  held->set_step(7);
  held->set_waiting_for("worker 0");
  const nlohmann::ordered_json json = StatusJson(status);
  EXPECT_EQ(json["phase"], "TRAINING");
  EXPECT_EQ(json["plan"].dump(),
            R"({"generation":2,"mode":"SSP","staleness_bound":3,"quorum":0,"first_step":0,"members":[1]})");
  ASSERT_EQ(json["tasks"].size(), 2u);
  EXPECT_EQ(json["tasks"][0]["role"], "worker");
  EXPECT_EQ(json["tasks"][0]["state"], "alive");
  EXPECT_EQ(json["tasks"][0]["waiting_for"], "step 7 waits for worker 0 (server 0)");
  EXPECT_EQ(json["tasks"][0]["waiting_seconds"], 0.25);
  EXPECT_EQ(json["tasks"][0]["trace"].dump(), R"(["1152921504606846976",""])");
  EXPECT_EQ(json["tasks"][1]["updates"], 99);
  EXPECT_EQ(json["tasks"][1]["held"].dump(), R"([[1,7,"worker 0"]])");
}

}  // namespace
}  // namespace rubato::coordinator
