#include "common/session/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/session/testing/session_fixture.h"

namespace rubato {
namespace {

TEST_F(SessionTest, LeavingIsTheLastMessageAndComesAfterAHeartbeat) {
  StartServer();
  StartSession();
  v1::TaskMessage message;
  message.mutable_shard_request()->set_request_id(9);
  session_->Send(message);
  EXPECT_TRUE(session_->Leave("disk full", absl::Seconds(10)).ok());
  EXPECT_TRUE(coordinator_.WaitUntil([](const auto& messages) {
    const size_t n = messages.size();
    return n >= 4 && messages[n - 1].leaving().error() == "disk full" && messages[n - 2].has_heartbeat() &&
           Count(messages, v1::TaskMessage::kShardRequest) == 1;
  }));
  EXPECT_EQ(coordinator_.sessions(), 1);
}

TEST_F(SessionTest, LeavingTellsWhenTheCoordinatorIsOutOfReach) {
  StartServer();
  const std::string address = absl::StrCat("127.0.0.1:", port_);
  StopServer();
  StartSession(address);
  absl::Status status = session_->Leave("", absl::Milliseconds(100));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(absl::StrContains(status.message(), "worker 1")) << status;
}

TEST_F(SessionTest, RepeatsALeavingThatTheCoordinatorDidNotTake) {
  coordinator_.AnswerFarewells({FakeCoordinator::Farewell::kBreak, FakeCoordinator::Farewell::kBreak});
  StartServer();
  StartSession();
  EXPECT_TRUE(session_->Leave("", absl::Seconds(10)).ok());
  EXPECT_TRUE(coordinator_.WaitUntil([](const auto& messages) {
    return Count(messages, v1::TaskMessage::kRegister) == 3 && Count(messages, v1::TaskMessage::kLeaving) == 3;
  }));
}

// All workers of a job ended within the second that they waited, and the job, which had done all its steps, failed.
TEST_F(SessionTest, ACoordinatorThatIsAwayAtThatMomentGetsTheLeavingWhenItIsBack) {
  StartServer();
  StartSession();
  ASSERT_TRUE(WaitForDirective(v1::Directive::kRegistered));
  StopServer();
  std::thread comes_back([this] {
    clock_.Sleep(absl::Seconds(3));
    StartServer(port_);
  });
  EXPECT_EQ(session_->Leave("", absl::Milliseconds(100)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(session_->Leave("", absl::Seconds(30)).ok());
  comes_back.join();
  EXPECT_TRUE(coordinator_.WaitUntil([](const auto& messages) {
    return messages.back().has_leaving() && Count(messages, v1::TaskMessage::kLeaving) == 1 &&
           messages.back().task().incarnation() == 42;
  }));
}

TEST_F(SessionTest, AWorkerThatHasDoneItsPartRegistersAsSuch) {
  StartServer();
  StartSession();
  ASSERT_TRUE(WaitForDirective(v1::Directive::kRegistered));
  v1::TaskMessage message;
  message.mutable_shard_request()->set_request_id(9);
  session_->Send(message);
  v1::WorkerProgress done;
  done.set_steps_total(70);
  session_->RegisterDone(done);
  EXPECT_TRUE(coordinator_.WaitUntil([](const auto& messages) {
    for (size_t n = 2; n < messages.size(); ++n) {
      if (!messages[n].register_().has_done()) continue;
      return messages[n].register_().done().steps_total() == 70 && messages[n].register_().train_examples() == 7 &&
             messages[n - 1].has_heartbeat() && Count(messages, v1::TaskMessage::kShardRequest) == 1;
    }
    return false;
  }));
  EXPECT_EQ(coordinator_.sessions(), 1);
  // It stays.
  EXPECT_TRUE(coordinator_.WaitUntil([](const auto& messages) {
    const size_t n = messages.size();
    return messages[n - 1].has_heartbeat() && messages[n - 2].has_heartbeat();
  }));
  coordinator_.BreakStream();
  EXPECT_TRUE(coordinator_.WaitUntil([](const auto& messages) {
    return Count(messages, v1::TaskMessage::kRegister) == 3 && messages.back().has_heartbeat();
  }));
  EXPECT_TRUE(coordinator_.WaitUntil([](const auto& messages) {
    return std::count_if(messages.begin(), messages.end(),
                         [](const auto& message) { return message.register_().has_done(); }) == 2;
  }));
}

TEST_F(SessionTest, ARestartEndsTheGoodbye) {
  coordinator_.AnswerFarewells({FakeCoordinator::Farewell::kRestart});
  StartServer();
  StartSession();
  EXPECT_TRUE(session_->Leave("", absl::Seconds(10)).ok());
  EXPECT_TRUE(WaitForDirective(v1::Directive::kRestart));
  EXPECT_EQ(coordinator_.sessions(), 1);
}

TEST_F(SessionTest, DoesNotComeBackToAJobThatHasStopped) {
  coordinator_.StopAfterRegister();
  StartServer();
  StartSession();
  ASSERT_TRUE(WaitForDirective(v1::Directive::kStop));
  coordinator_.BreakStream();
  EXPECT_TRUE(session_->Leave("", absl::Seconds(10)).ok());
  EXPECT_EQ(coordinator_.sessions(), 1);
}

TEST_F(SessionTest, ARefusedTaskSaysGoodbyeAllTheSame) {
  coordinator_.Refuse();
  StartServer();
  StartSession();
  ASSERT_TRUE(WaitForDirective(v1::Directive::kStop));
  EXPECT_TRUE(session_->Leave("refused", absl::Seconds(10)).ok());
  EXPECT_TRUE(
      coordinator_.WaitUntil([](const auto& messages) { return Count(messages, v1::TaskMessage::kLeaving) == 1; }));
}

TEST_F(SessionTest, CanBeDestroyedAtAnyTime) {
  StartServer();
  for (int i = 0; i < 20; ++i) {
    {
      MutexLock lock(mu_);
      directives_.clear();
    }
    StartSession();
    // Every other one in the middle of its work, the others while they connect.
    if (i % 2 == 1) {
      ASSERT_TRUE(WaitForDirective(v1::Directive::kRegistered));
    }
    DestroySession();
    ASSERT_TRUE(coordinator_.WaitUntilAlone()) << "the stream of session " << i << " outlives it";
  }
  EXPECT_GE(coordinator_.sessions(), 10);
  // It goes without a word.
  EXPECT_TRUE(coordinator_.WaitUntil([](const auto& messages) {
    return Count(messages, v1::TaskMessage::kRegister) >= 10 && Count(messages, v1::TaskMessage::kLeaving) == 0;
  }));
}

}  // namespace
}  // namespace rubato
