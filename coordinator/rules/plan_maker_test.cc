#include "coordinator/rules/plan_maker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "common/random.h"
#include "coordinator/testing/plan_maker_fixture.h"

namespace rubato::coordinator {
namespace {

using Kind = PlanAction::Kind;

TEST_F(PlanMakerTest, TheFirstPlanIsJournalledAndThenSentToAllServers) {
  maker_.AddWorker(WorkerTask(0), now_);
  maker_.AddWorker(WorkerTask(1), now_);
  auto actions = maker_.Start(Rules(v1::SYNC, "start"), now_);
  ASSERT_EQ(actions.size(), 3u);
  EXPECT_EQ(actions[0].kind, Kind::kJournalPlan);
  EXPECT_EQ(actions[1].kind, Kind::kCommit);
  EXPECT_EQ(actions[1].plan.generation(), 1u);
  EXPECT_EQ(actions[1].plan.first_step(), 0);
  EXPECT_EQ(actions[1].plan.members_size(), 2);
  EXPECT_TRUE(maker_.OnPlanAck(0, 1, 0, now_).empty());
  EXPECT_EQ(Count(maker_.OnPlanAck(1, 1, 0, now_), Kind::kCommitted), 1);
  EXPECT_TRUE(maker_.OnPlanAck(1, 1, 0, now_).empty());
}

TEST_F(PlanMakerTest, AChangeBeginsAboveTheHighestStartedStep) {
  StartWith(2);
  auto announce = maker_.RequestChange(Rules(v1::ASYNC), now_);
  ASSERT_EQ(announce.size(), 3u);
  EXPECT_EQ(announce[0].kind, Kind::kJournalAnnounce);
  EXPECT_EQ(announce[1].kind, Kind::kAnnounce);
  EXPECT_EQ(announce[1].generation, 2u);
  auto decided = AckAnnounce(17, 16);
  ASSERT_EQ(decided.size(), 3u);
  EXPECT_EQ(decided[0].kind, Kind::kJournalPlan);
  EXPECT_EQ(decided[1].kind, Kind::kCommit);
  EXPECT_EQ(decided[1].plan.first_step(), 18);
  EXPECT_EQ(decided[1].plan.mode(), v1::ASYNC);
  now_ += absl::Milliseconds(30);
  auto committed = AckPlan();
  ASSERT_EQ(Count(committed, Kind::kCommitted), 1);
  EXPECT_EQ(committed[0].round_trip, absl::Milliseconds(30));
}

TEST_F(PlanMakerTest, WaitsUntilEveryMemberHasEnteredThePresentPlan) {
  StartWith(2);
  maker_.RequestChange(Rules(v1::ASYNC), now_);
  AckAnnounce(3, 3);
  AckPlan();
  EXPECT_TRUE(maker_.RequestChange(Rules(v1::SYNC), now_).empty());
  EXPECT_TRUE(maker_.OnEntered(WorkerTask(0), 2, now_).empty());
  EXPECT_EQ(maker_.WaitingFor(), "worker 1 to enter plan 2");
  EXPECT_EQ(Count(maker_.OnEntered(WorkerTask(1), 2, now_), Kind::kAnnounce), 2);
}

TEST_F(PlanMakerTest, TheLastRequestWinsWhileOneIsUnderWay) {
  StartWith(2);
  maker_.RequestChange(Rules(v1::ASYNC), now_);
  EXPECT_TRUE(maker_.RequestChange(Rules(v1::SSP, "first"), now_).empty());
  auto dropped = maker_.RequestChange(Rules(v1::SYNC, "second"), now_);
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_EQ(dropped[0].kind, Kind::kDropped);
  EXPECT_EQ(dropped[0].change.reason, "first");
  AckAnnounce(1, 1);
  AckPlan();
  EXPECT_EQ(maker_.plan().mode(), v1::ASYNC);
  EnterAll();
  AckAnnounce(2, 2);
  EXPECT_EQ(maker_.plan().mode(), v1::SYNC);
}

TEST_F(PlanMakerTest, UnacknowledgedMessagesAreSentAgain) {
  StartWith(2);
  maker_.RequestChange(Rules(v1::ASYNC), now_);
  maker_.OnAnnounceAck(0, 2, 5, now_);
  now_ += absl::Milliseconds(100);
  EXPECT_TRUE(maker_.OnTick(now_).empty());
  now_ += absl::Milliseconds(100);
  auto again = maker_.OnTick(now_);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].kind, Kind::kAnnounce);
  EXPECT_EQ(again[0].server, 1u);
  maker_.OnAnnounceAck(1, 2, 5, now_);
  maker_.OnPlanAck(1, 2, 0, now_);
  now_ += absl::Milliseconds(200);
  again = maker_.OnTick(now_);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].kind, Kind::kCommit);
  EXPECT_EQ(again[0].server, 0u);
}

TEST_F(PlanMakerTest, ALostMemberIsAmendedOutAtOnce) {
  StartWith(3);
  auto actions = maker_.RemoveWorkers({WorkerTask(1)}, true, now_);
  ASSERT_EQ(actions.size(), 3u);
  EXPECT_EQ(actions[0].kind, Kind::kJournalPlan);
  EXPECT_EQ(actions[1].plan.generation(), 1u);
  EXPECT_EQ(actions[1].plan.amendment(), 1u);
  EXPECT_EQ(actions[1].plan.members_size(), 2);
  EXPECT_EQ(Count(AckPlan(), Kind::kAmended), 1);
  EXPECT_TRUE(maker_.RemoveWorkers({WorkerTask(1)}, true, now_).empty());
}

TEST_F(PlanMakerTest, ThoseWhoAreLostTogetherAreAmendedOutTogether) {
  StartWith(5);
  auto actions = maker_.RemoveWorkers({WorkerTask(1), WorkerTask(9), WorkerTask(3), WorkerTask(4)}, true, now_);
  EXPECT_EQ(Count(actions, Kind::kJournalPlan), 1);
  EXPECT_EQ(Count(actions, Kind::kCommit), 2);
  EXPECT_EQ(maker_.plan().amendment(), 1u);
  EXPECT_EQ(maker_.plan().members_size(), 2);
}

TEST_F(PlanMakerTest, AnAmendmentDuringAnAnnouncementAlsoShrinksTheNewPlan) {
  StartWith(3);
  maker_.RequestChange(Rules(v1::ASYNC), now_);
  maker_.OnAnnounceAck(0, 2, 5, now_);
  EXPECT_EQ(Count(maker_.RemoveWorkers({WorkerTask(2)}, true, now_), Kind::kCommit), 2);
  maker_.OnAnnounceAck(1, 2, 6, now_);
  EXPECT_EQ(maker_.plan().generation(), 2u);
  EXPECT_EQ(maker_.plan().first_step(), 7);
  EXPECT_EQ(maker_.plan().members_size(), 2);
}

TEST_F(PlanMakerTest, AJoinIsAPlanChangeThatKeepsTheRules) {
  PlanChange rules = Rules(v1::SSP);
  rules.staleness_bound = 3;
  StartWith(2, rules);
  EXPECT_EQ(Count(maker_.AddWorker(WorkerTask(7), now_), Kind::kAnnounce), 2);
  maker_.AddWorker(WorkerTask(3), now_);
  AckAnnounce(9, 9);
  EXPECT_EQ(maker_.plan().members_size(), 4);
  EXPECT_EQ(maker_.plan().members(3).index(), 7u);
  EXPECT_EQ(maker_.plan().mode(), v1::SSP);
  EXPECT_EQ(maker_.plan().staleness_bound(), 3);
}

TEST_F(PlanMakerTest, AReplacedIncarnationLeavesAndJoins) {
  StartWith(2);
  maker_.RemoveWorkers({WorkerTask(1)}, true, now_);
  maker_.AddWorker(WorkerTask(1, 2), now_);
  EXPECT_EQ(Count(AckPlan(), Kind::kAnnounce), 2);
  AckAnnounce(4, 4);
  EXPECT_EQ(maker_.plan().members(1).incarnation(), 2u);
  AckPlan();
  maker_.RequestChange(Rules(v1::ASYNC), now_);
  maker_.OnEntered(WorkerTask(0), 2, now_);
  EXPECT_TRUE(maker_.OnEntered(WorkerTask(1, 1), 2, now_).empty()) << "the old incarnation's heartbeat does not count";
}

TEST_F(PlanMakerTest, ANewPlansQuorumNeverExceedsItsMembersAndAnAmendmentLeavesItAlone) {
  PlanChange rules = Rules(v1::SYNC);
  rules.quorum = 2;
  StartWith(3, rules);
  maker_.RemoveWorkers({WorkerTask(0)}, true, now_);
  maker_.RemoveWorkers({WorkerTask(1)}, true, now_);
  EXPECT_EQ(maker_.plan().quorum(), 2u);
  AckPlan();
  rules.quorum = 3;
  maker_.RequestChange(rules, now_);
  AckAnnounce(1, 1);
  EXPECT_EQ(maker_.plan().quorum(), 1u);
}

TEST_F(PlanMakerTest, ARestartSendsThePlanAgainAndRepeatsTheAnnouncement) {
  StartWith(2);
  maker_.RequestChange(Rules(v1::ASYNC), now_);
  PlanMaker restarted({.servers = {0, 1}});
  auto actions = restarted.Resume(maker_.plan(), 2, 0, std::pair<uint64_t, PlanChange>(2, Rules(v1::ASYNC)), now_);
  EXPECT_EQ(Count(actions, Kind::kCommit), 2);
  EXPECT_EQ(Count(actions, Kind::kAnnounce), 2);
  restarted.OnAnnounceAck(0, 2, 3, now_);
  restarted.OnAnnounceAck(1, 2, 4, now_);
  EXPECT_EQ(restarted.plan().first_step(), 5);
  EXPECT_EQ(restarted.plan().members_size(), 2);
}

// With two members left a plan asks for two contributions at most; a third one that joins brings back what was asked
// for.
TEST_F(PlanMakerTest, ARestartRemembersTheQuorumThatWasAskedFor) {
  PlanChange rules = Rules(v1::SYNC);
  rules.quorum = 3;
  StartWith(2, rules);
  ASSERT_EQ(maker_.plan().quorum(), 2u);
  PlanMaker restarted({.servers = {0}});
  restarted.Resume(maker_.plan(), 2, 3, std::nullopt, now_);
  restarted.OnPlanAck(0, 1, 0, now_);
  for (uint32_t i = 0; i < 2; ++i) restarted.OnEntered(WorkerTask(i), 1, now_);
  restarted.AddWorker(WorkerTask(2), now_);
  restarted.OnAnnounceAck(0, restarted.announced_generation(), 4, now_);
  EXPECT_EQ(restarted.plan().members_size(), 3);
  EXPECT_EQ(restarted.plan().quorum(), 3u);
}

TEST_F(PlanMakerTest, ACutIsAPlanWithThePresentRules) {
  StartWith(2, Rules(v1::ASYNC));
  v1::Cut cut;
  cut.set_id(4);
  maker_.RequestCut(cut, now_);
  AckAnnounce(6, 8);
  EXPECT_EQ(maker_.plan().cut().id(), 4u);
  EXPECT_EQ(maker_.plan().cut().name(), "step9");
  EXPECT_EQ(maker_.plan().mode(), v1::ASYNC);
  // The next plan is none.
  AckPlan();
  EnterAll();
  maker_.RequestChange(Rules(v1::SYNC), now_);
  AckAnnounce(20, 20);
  EXPECT_FALSE(maker_.plan().has_cut());
}

// The parts of the one must not take the place of the other's, which may be all that there is to go back to.
TEST_F(PlanMakerTest, TwoCutsBeforeTheSameStepHaveDifferentNames) {
  StartWith(2, Rules(v1::ASYNC));
  const auto name_of_next = [this](uint64_t id, int64_t highest) {
    v1::Cut cut;
    cut.set_id(id);
    maker_.RequestCut(cut, now_);
    AckAnnounce(highest, highest);
    AckPlan();
    EnterAll();
    return maker_.plan().cut().name();
  };
  EXPECT_EQ(name_of_next(1, -1), "step0.1");  // "step0" has the first weights.
  EXPECT_EQ(name_of_next(2, 8), "step9");
  EXPECT_EQ(name_of_next(3, 8), "step9.3");
  PlanMaker restarted({});
  restarted.Resume(maker_.plan(), 2, 0, std::nullopt, now_);
  PlanMaker went_back({.first_step = 9, .last_generation = 20, .last_cut_step = 9});
  for (PlanMaker* maker : {&restarted, &went_back}) {
    if (maker == &went_back) {
      for (uint32_t i = 0; i < 2; ++i) maker->AddWorker(WorkerTask(i), now_);
      maker->Start(Rules(v1::ASYNC), now_);
    }
    v1::Cut cut;
    cut.set_id(4);
    const uint64_t generation = maker->plan().generation();
    maker->OnPlanAck(0, generation, 0, now_);
    for (uint32_t i = 0; i < 2; ++i) maker->OnEntered(WorkerTask(i), generation, now_);
    maker->RequestCut(cut, now_);
    maker->OnAnnounceAck(0, maker->announced_generation(), 8, now_);
    EXPECT_EQ(maker->plan().cut().name(), "step9.4");
  }
}

TEST_F(PlanMakerTest, ClosingAbortsWhatIsAnnounced) {
  StartWith(2);
  maker_.RequestChange(Rules(v1::ASYNC), now_);
  auto actions = maker_.Close();
  EXPECT_EQ(Count(actions, Kind::kAbort), 2);
  EXPECT_EQ(Count(actions, Kind::kDropped), 1);
  EXPECT_EQ(maker_.announced_generation(), 0u);
  EXPECT_EQ(Count(maker_.RequestChange(Rules(v1::ASYNC), now_), Kind::kDropped), 1);
}

class StaticPlanMakerTest : public PlanMakerTest {
 protected:
  StaticPlanMakerTest() : PlanMakerTest({.servers = {0, 1}, .static_batch = 10, .train_examples = 100}) {}
};

TEST_F(StaticPlanMakerTest, ALostMemberLeadsToANewPartitionOfTheData) {
  StartWith(4);
  maker_.RemoveWorkers({WorkerTask(3)}, true, now_);
  EXPECT_EQ(Count(AckPlan(), Kind::kAnnounce), 2);
  AckAnnounce(3, 3);
  // Four steps of the four members that the plan began with: 40, 80, 100 (the epoch's end), 140.
  EXPECT_EQ(maker_.plan().first_example(), 140);
  EXPECT_EQ(maker_.plan().members_size(), 3);
}

// The coordinator was lost after the amendment was journalled, and before it announced what follows.
TEST_F(StaticPlanMakerTest, ALostMembersPartIsTakenOverAfterARestartToo) {
  StartWith(4);
  maker_.RemoveWorkers({WorkerTask(3)}, true, now_);
  PlanMaker restarted({.servers = {0}, .static_batch = 10, .train_examples = 100});
  restarted.Resume(maker_.plan(), 4, 0, std::nullopt, now_);
  for (uint32_t i = 0; i < 3; ++i) restarted.OnEntered(WorkerTask(i), 1, now_);
  EXPECT_EQ(Count(restarted.OnPlanAck(0, 1, 1, now_), Kind::kAnnounce), 1);
  restarted.OnAnnounceAck(0, 2, 3, now_);
  EXPECT_EQ(restarted.plan().first_example(), 140);
}

TEST_F(StaticPlanMakerTest, AMemberThatLeavesLeavesTheOthersPartsAlone) {
  StartWith(2);
  maker_.RemoveWorkers({WorkerTask(0)}, false, now_);
  EXPECT_EQ(Count(AckPlan(), Kind::kAnnounce), 0);
}

// Servers and workers reduced to what plan changes need, behind a network that loses, repeats and reorders.
class LossyWorld {
 public:
  explicit LossyWorld(uint64_t seed) : random_(seed), maker_({.servers = {0, 1, 2}}) {
    for (uint32_t i = 0; i < kWorkers; ++i) maker_.AddWorker(WorkerTask(i), now_);
    Do(maker_.Start(Rules(v1::SYNC), now_));
  }

  void Run(int events) {
    for (int i = 0; i < events; ++i) {
      now_ += absl::Milliseconds(20);
      if (random_.Below(40) == 0) {
        Do(maker_.RequestChange(Rules(random_.Below(2) ? v1::ASYNC : v1::SYNC), now_));
        ++requests_;
      }
      if (random_.Below(60) == 0) Churn();
      Do(maker_.OnTick(now_));
      DeliverOne();
      WorkOne();
    }
  }
  // Without loss, until nothing is left to do.
  void Settle() {
    lossy_ = false;
    for (int i = 0; i < 3000; ++i) {
      now_ += absl::Milliseconds(20);
      Do(maker_.OnTick(now_));
      DeliverOne();
      WorkOne();
    }
  }

  static constexpr uint32_t kServers = 3;
  static constexpr uint32_t kWorkers = 4;
  struct Server {
    v1::Plan plan;
    uint64_t holding = 0;
    int64_t highest = -1;
  };

  Random random_;
  absl::Time now_ = absl::UnixEpoch();
  PlanMaker maker_;
  Server servers_[kServers];
  std::deque<PlanAction> network_;
  std::vector<v1::Plan> journal_;
  std::map<uint32_t, uint64_t> incarnations_;
  bool lossy_ = true;
  int requests_ = 0;
  int committed_ = 0;
  int dropped_ = 0;

 private:
  void Do(const PlanMaker::Actions& actions) {
    for (const PlanAction& action : actions) {
      switch (action.kind) {
        case Kind::kJournalPlan:
          CheckOrder(action.plan);
          journal_.push_back(action.plan);
          break;
        case Kind::kCommitted:
          ++committed_;
          break;
        case Kind::kDropped:
          ++dropped_;
          break;
        case Kind::kCommit:
          EXPECT_EQ(action.plan.generation(), journal_.back().generation()) << "sent before it was journalled";
          [[fallthrough]];
        case Kind::kAnnounce:
        case Kind::kAbort:
          network_.push_back(action);
          break;
        case Kind::kJournalAnnounce:
        case Kind::kAmended:
          break;
      }
    }
  }
  void CheckOrder(const v1::Plan& plan) {
    if (journal_.empty()) return;
    const v1::Plan& last = journal_.back();
    if (plan.generation() == last.generation()) {
      EXPECT_EQ(plan.amendment(), last.amendment() + 1);
      return;
    }
    EXPECT_EQ(plan.generation(), last.generation() + 1);
    for (const Server& server : servers_) EXPECT_GT(plan.first_step(), server.highest);
  }
  void DeliverOne() {
    if (network_.empty()) return;
    size_t i = lossy_ ? random_.Below(network_.size()) : 0;
    PlanAction action = network_[i];
    if (!lossy_ || random_.Below(4) != 0) network_.erase(network_.begin() + static_cast<int64_t>(i));
    if (lossy_ && random_.Below(4) == 0) return;
    Server& server = servers_[action.server];
    if (action.kind == Kind::kAnnounce) {
      if (action.generation > server.plan.generation()) server.holding = std::max(server.holding, action.generation);
      if (server.holding != action.generation || (lossy_ && random_.Below(4) == 0)) return;
      Do(maker_.OnAnnounceAck(action.server, action.generation, server.highest, now_));
    } else if (action.kind == Kind::kCommit) {
      if (std::pair(action.plan.generation(), action.plan.amendment()) >
          std::pair(server.plan.generation(), server.plan.amendment())) {
        server.plan = action.plan;
        if (server.holding <= action.plan.generation()) server.holding = 0;
      }
      if (lossy_ && random_.Below(4) == 0) return;
      Do(maker_.OnPlanAck(action.server, server.plan.generation(), server.plan.amendment(), now_));
    }
  }
  // A worker begins a step if nothing holds it, and says which plan it is in.
  void WorkOne() {
    Server& server = servers_[random_.Below(kServers)];
    if (server.holding == 0 && server.plan.generation() > 0) {
      server.highest = std::max(server.highest + 1, server.plan.first_step());
    }
    const v1::Plan plan = maker_.plan();
    if (plan.members_size() == 0 || (lossy_ && random_.Below(3) != 0)) return;
    Do(maker_.OnEntered(plan.members(static_cast<int>(random_.Below(plan.members_size()))), plan.generation(), now_));
  }
  void Churn() {
    uint32_t index = static_cast<uint32_t>(random_.Below(kWorkers));
    uint64_t& incarnation = incarnations_[index];
    Do(maker_.RemoveWorkers({WorkerTask(index, incarnation + 1)}, true, now_));
    ++incarnation;
    if (random_.Below(4) != 0) Do(maker_.AddWorker(WorkerTask(index, incarnation + 1), now_));
  }
};

TEST(PlanMakerUnderLoss, EveryRequestEndsAndAllServersAgree) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    LossyWorld world(seed);
    world.Run(1500);
    world.Settle();
    EXPECT_EQ(world.maker_.announced_generation(), 0u);
    EXPECT_TRUE(world.maker_.HeldByAllServers());
    for (const auto& server : world.servers_) {
      EXPECT_EQ(server.plan.generation(), world.maker_.plan().generation());
      EXPECT_EQ(server.plan.amendment(), world.maker_.plan().amendment());
      EXPECT_EQ(server.holding, 0u);
    }
    EXPECT_GT(world.committed_, 3);
    EXPECT_LE(world.dropped_, world.requests_);
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace rubato::coordinator
