#ifndef RUBATO_COORDINATOR_TESTING_PLAN_MAKER_FIXTURE_H_
#define RUBATO_COORDINATOR_TESTING_PLAN_MAKER_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "coordinator/rules/plan_maker.h"
#include "coordinator/testing/small_job.h"

namespace rubato::coordinator {

inline PlanChange Rules(v1::Mode mode, const std::string& reason = "operator") {
  PlanChange change;
  change.mode = mode;
  change.reason = reason;
  return change;
}

// A plan maker of two servers, whose workers and servers do what they should when they are told to.
class PlanMakerTest : public testing::Test {
 protected:
  using Kind = PlanAction::Kind;

  explicit PlanMakerTest(const PlanMaker::Options& options = {.servers = {0, 1}}) : maker_(options) {}

  void StartWith(uint32_t workers, PlanChange rules = Rules(v1::SYNC)) {
    for (uint32_t i = 0; i < workers; ++i) maker_.AddWorker(WorkerTask(i), now_);
    maker_.Start(rules, now_);
    AckPlan();
    EnterAll();
  }
  PlanMaker::Actions AckPlan() {
    maker_.OnPlanAck(0, maker_.plan().generation(), maker_.plan().amendment(), now_);
    return maker_.OnPlanAck(1, maker_.plan().generation(), maker_.plan().amendment(), now_);
  }
  PlanMaker::Actions EnterAll() {
    PlanMaker::Actions all;
    v1::Plan plan = maker_.plan();
    for (const v1::TaskId& member : plan.members()) {
      auto actions = maker_.OnEntered(member, plan.generation(), now_);
      all.insert(all.end(), actions.begin(), actions.end());
    }
    return all;
  }
  PlanMaker::Actions AckAnnounce(int64_t a, int64_t b) {
    maker_.OnAnnounceAck(0, maker_.announced_generation(), a, now_);
    return maker_.OnAnnounceAck(1, maker_.announced_generation(), b, now_);
  }
  static int Count(const PlanMaker::Actions& actions, Kind kind) {
    return std::count_if(actions.begin(), actions.end(), [&](const PlanAction& a) { return a.kind == kind; });
  }

  absl::Time now_ = absl::UnixEpoch();
  PlanMaker maker_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_TESTING_PLAN_MAKER_FIXTURE_H_
