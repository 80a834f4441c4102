#include "worker/ps_client/step_machine.h"

#include <gtest/gtest.h>

namespace rubato::worker {
namespace {

using Kind = StepMachine::Kind;
using Reply = v1::ExchangeReply;

v1::Plan MakePlan(uint64_t generation, int64_t first_step) {
  v1::Plan plan;
  plan.set_generation(generation);
  plan.set_mode(v1::ASYNC);
  plan.set_first_step(first_step);
  return plan;
}

Reply Answer(Reply::Outcome outcome, Reply::PushOutcome push = Reply::PUSH_NONE) {
  Reply reply;
  reply.set_outcome(outcome);
  reply.set_push(push);
  return reply;
}

Reply Moved(uint64_t generation, int64_t next_step, Reply::PushOutcome push = Reply::PUSH_NONE) {
  Reply reply = Answer(Reply::MOVED, push);
  *reply.mutable_plan() = MakePlan(generation, next_step);
  reply.set_next_step(next_step);
  return reply;
}

// A worker with two batches.
class StepMachineTest : public testing::Test, public StepMachine::Sink {
 protected:
  void Send(const StepMachine::Request& request) override { sent_.push_back(request); }

  // The request that `batch` sent last.
  const StepMachine::Request& Last(int batch) {
    for (auto request = sent_.rbegin(); request != sent_.rend(); ++request) {
      if (request->batch == batch) return *request;
    }
    ADD_FAILURE() << "batch " << batch << " has sent nothing";
    return sent_.front();
  }
  void GetReply(int batch, const Reply& reply) {
    absl::Status status = machine_.OnReply(Last(batch).id, reply);
    EXPECT_TRUE(status.ok()) << status;
  }
  void ExpectLast(int batch, Kind kind, uint64_t generation, int64_t step) {
    EXPECT_EQ(Last(batch).kind, kind);
    EXPECT_EQ(Last(batch).generation, generation);
    EXPECT_EQ(Last(batch).step, step);
  }
  // Works on step 0 of generation 1.
  void BeginFirstStep() {
    machine_.Start(MakePlan(1, 0));
    GetReply(0, Answer(Reply::OK));
    GetReply(1, Answer(Reply::OK));
    ASSERT_TRUE(machine_.complete());
    machine_.BeginStep();
  }

  std::vector<StepMachine::Request> sent_;
  StepMachine machine_{2, this};
};

TEST_F(StepMachineTest, PullsEveryBatchOfTheFirstStep) {
  machine_.Start(MakePlan(3, 7));
  ASSERT_EQ(sent_.size(), 2u);
  ExpectLast(0, Kind::kPull, 3, 7);
  ExpectLast(1, Kind::kPull, 3, 7);
  EXPECT_NE(Last(0).id, Last(1).id);
  GetReply(1, Answer(Reply::OK));
  EXPECT_TRUE(machine_.Have(1));
  EXPECT_FALSE(machine_.Have(0));
  EXPECT_FALSE(machine_.complete());
  GetReply(0, Answer(Reply::OK));
  EXPECT_TRUE(machine_.complete());
}

TEST_F(StepMachineTest, PushesTheStepAtWorkAndGetsTheNextOne) {
  BeginFirstStep();
  EXPECT_EQ(machine_.current_step(), 0);
  EXPECT_EQ(machine_.step(), 1);
  machine_.Push(1);
  ExpectLast(1, Kind::kPushPull, 1, 0);
  machine_.Push(0);
  EXPECT_EQ(machine_.open_pushes(), 2);
  GetReply(1, Answer(Reply::OK, Reply::PUSH_APPLIED));
  GetReply(0, Answer(Reply::OK, Reply::PUSH_APPLIED));
  EXPECT_EQ(machine_.open_pushes(), 0);
  EXPECT_TRUE(machine_.complete());
  machine_.BeginStep();
  EXPECT_EQ(machine_.current_step(), 1);
}

TEST_F(StepMachineTest, IgnoresAnswersToOldRequests) {
  machine_.Start(MakePlan(1, 0));
  const uint64_t old = Last(0).id;
  machine_.Resend(0);
  EXPECT_NE(Last(0).id, old);
  EXPECT_EQ(machine_.BatchOf(old), -1);
  EXPECT_TRUE(machine_.OnReply(old, Answer(Reply::NOT_A_MEMBER)).ok());
  EXPECT_FALSE(machine_.Have(0));
  GetReply(0, Answer(Reply::OK));
  EXPECT_TRUE(machine_.Have(0));
  const uint64_t answered = Last(0).id;
  EXPECT_TRUE(machine_.OnReply(answered, Moved(2, 5)).ok());
  EXPECT_FALSE(machine_.moved());
}

TEST_F(StepMachineTest, SendsTheSamePushAgainWhenItMayBeLost) {
  BeginFirstStep();
  machine_.Push(0);
  const StepMachine::Request first = Last(0);
  machine_.Resend(0);
  ExpectLast(0, Kind::kPushPull, 1, 0);
  EXPECT_GT(Last(0).id, first.id);
  EXPECT_TRUE(machine_.HasOpen(0));
}

TEST_F(StepMachineTest, ResendsNothingWhereNothingIsOpen) {
  BeginFirstStep();
  const size_t before = sent_.size();
  machine_.Resend(0);
  EXPECT_EQ(sent_.size(), before);
}

TEST_F(StepMachineTest, AsksOnlyForTheStartAfterAWaitWhosePushIsDone) {
  BeginFirstStep();
  machine_.Push(0);
  GetReply(0, Answer(Reply::WAITING, Reply::PUSH_APPLIED));
  ExpectLast(0, Kind::kPull, 1, 1);
  GetReply(0, Answer(Reply::WAITING));
  ExpectLast(0, Kind::kPull, 1, 1);
  EXPECT_EQ(machine_.open_pushes(), 0);
}

TEST_F(StepMachineTest, PushesAgainAfterAWaitWhosePushIsPending) {
  BeginFirstStep();
  machine_.Push(0);
  GetReply(0, Answer(Reply::WAITING, Reply::PUSH_PENDING));
  ExpectLast(0, Kind::kPushPull, 1, 0);
  EXPECT_EQ(machine_.open_pushes(), 1);
  GetReply(0, Answer(Reply::OK, Reply::PUSH_DUPLICATE));
  EXPECT_TRUE(machine_.Have(0));
}

TEST_F(StepMachineTest, AMoveMakesWeightsOfTheAbandonedStepStale) {
  machine_.Start(MakePlan(1, 0));
  GetReply(0, Answer(Reply::OK));
  GetReply(1, Moved(2, 4));
  EXPECT_TRUE(machine_.moved());
  EXPECT_FALSE(machine_.Have(0));
  EXPECT_EQ(machine_.generation(), 2u);
  EXPECT_EQ(machine_.step(), 4);
  EXPECT_EQ(machine_.plan().first_step(), 4);
  ExpectLast(1, Kind::kPull, 2, 4);
  ExpectLast(0, Kind::kPull, 1, 0);  // Not before the trainer has let go of the weights.
  machine_.Restart();
  EXPECT_FALSE(machine_.moved());
  ExpectLast(0, Kind::kPull, 2, 4);
  GetReply(0, Answer(Reply::OK));
  GetReply(1, Answer(Reply::OK));
  EXPECT_TRUE(machine_.complete());
}

TEST_F(StepMachineTest, PushesOfTheStepAtWorkGoOnUnderItsOwnPlanAfterAMove) {
  BeginFirstStep();
  machine_.Push(1);
  GetReply(1, Moved(2, 4, Reply::PUSH_APPLIED));
  EXPECT_TRUE(machine_.moved());
  ExpectLast(1, Kind::kPull, 2, 4);
  machine_.Push(0);
  ExpectLast(0, Kind::kPushPull, 1, 0);
  machine_.Restart();
  GetReply(0, Moved(2, 4, Reply::PUSH_APPLIED));
  EXPECT_FALSE(machine_.moved());  // It was known.
  ExpectLast(0, Kind::kPull, 2, 4);
  GetReply(0, Answer(Reply::OK));
  GetReply(1, Answer(Reply::OK));
  ASSERT_TRUE(machine_.complete());
  machine_.BeginStep();
  EXPECT_EQ(machine_.current_generation(), 2u);
  EXPECT_EQ(machine_.current_step(), 4);
}

TEST_F(StepMachineTest, WeightsOfAStepThatWasMovedMeanwhileAreAskedForAgain) {
  machine_.Start(MakePlan(1, 0));
  GetReply(1, Moved(2, 4));
  GetReply(0, Answer(Reply::OK));  // Of step 0.
  EXPECT_FALSE(machine_.Have(0));
  ExpectLast(0, Kind::kPull, 2, 4);
}

TEST_F(StepMachineTest, AWaitThatWasMovedMeanwhileGoesOnWithTheNewStep) {
  machine_.Start(MakePlan(1, 0));
  GetReply(1, Moved(2, 4));
  GetReply(0, Answer(Reply::WAITING));
  ExpectLast(0, Kind::kPull, 2, 4);
}

TEST_F(StepMachineTest, NeverGoesBack) {
  machine_.Start(MakePlan(1, 0));
  GetReply(0, Moved(3, 9));
  GetReply(1, Moved(2, 4));  // A server that has not heard of plan 3.
  EXPECT_EQ(machine_.generation(), 3u);
  EXPECT_EQ(machine_.step(), 9);
  ExpectLast(1, Kind::kPull, 3, 9);
}

TEST_F(StepMachineTest, IsMovedWithinAPlanAsALaggardOfAQuorum) {
  BeginFirstStep();
  machine_.Push(0);
  GetReply(0, Moved(1, 6, Reply::PUSH_DROPPED));
  EXPECT_EQ(machine_.generation(), 1u);
  EXPECT_EQ(machine_.step(), 6);
  machine_.Push(1);
  GetReply(1, Answer(Reply::OK, Reply::PUSH_APPLIED));  // With weights of step 1.
  ExpectLast(1, Kind::kPull, 1, 6);
}

TEST_F(StepMachineTest, GivesUpWhenItIsNoMember) {
  machine_.Start(MakePlan(1, 0));
  EXPECT_TRUE(absl::IsAborted(machine_.OnReply(Last(0).id, Answer(Reply::NOT_A_MEMBER))));
}

TEST_F(StepMachineTest, GivesUpWhenItIsRefused) {
  machine_.Start(MakePlan(1, 0));
  Reply reply = Answer(Reply::REFUSED);
  reply.set_message("chunks: none given");
  absl::Status status = machine_.OnReply(Last(0).id, reply);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_NE(status.message().find("chunks: none given"), std::string::npos);
}

}  // namespace
}  // namespace rubato::worker
