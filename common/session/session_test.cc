#include "common/session/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/session/testing/session_fixture.h"

namespace rubato {
namespace {

TEST_F(SessionTest, RegistersFirstAndThenSendsHeartbeats) {
  StartServer();
  StartSession();
  EXPECT_TRUE(WaitForDirective(v1::Directive::kRegistered));
  EXPECT_TRUE(coordinator_.WaitUntil([](const auto& messages) {
    return Count(messages, v1::TaskMessage::kHeartbeat) >= 3 && messages[0].has_register_() &&
           messages[0].register_().train_examples() == 7 && messages[2].task().incarnation() == 42 &&
           messages[2].heartbeat().progress().step() == 3;
  }));
}

TEST_F(SessionTest, CarriesMessagesAndDirectives) {
  StartServer();
  StartSession();
  for (uint64_t id = 1; id <= 100; ++id) {
    v1::TaskMessage message;
    message.mutable_shard_request()->set_request_id(id);
    session_->Send(message);
  }
  ASSERT_TRUE(WaitForDirective(v1::Directive::kShardGrant, 100));
  MutexLock lock(mu_);
  uint64_t next = 1;
  for (const v1::Directive& directive : directives_) {
    if (!directive.has_shard_grant()) continue;
    EXPECT_EQ(directive.shard_grant().request_id(), next++);
  }
}

TEST_F(SessionTest, RegistersAgainAfterTheStreamBroke) {
  StartServer();
  StartSession();
  ASSERT_TRUE(WaitForDirective(v1::Directive::kRegistered));
  coordinator_.BreakStream();
  EXPECT_TRUE(WaitForDirective(v1::Directive::kRegistered, 2));
  EXPECT_EQ(coordinator_.sessions(), 2);
}

TEST_F(SessionTest, FindsACoordinatorThatWasStartedAnew) {
  StartServer();
  StartSession();
  ASSERT_TRUE(WaitForDirective(v1::Directive::kRegistered));
  StopServer();
  v1::TaskMessage message;
  message.mutable_shard_request()->set_request_id(9);
  session_->Send(message);
  StartServer(port_);
  EXPECT_TRUE(WaitForDirective(v1::Directive::kRegistered, 2));
  // The first one may have gone with the stream that broke.
  session_->Send(message);
  EXPECT_TRUE(WaitForDirective(v1::Directive::kShardGrant));
}

TEST_F(SessionTest, GivesUpNamingTheAddress) {
  StartServer();
  const std::string address = absl::StrCat("127.0.0.1:", port_);
  StopServer();
  StartSession(address, absl::Milliseconds(300));
  ASSERT_TRUE(WaitFor([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return lost_.has_value(); }));
  MutexLock lock(mu_);
  EXPECT_EQ(lost_->code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(lost_->message(), address)) << *lost_;
  EXPECT_EQ(session_->Leave("", absl::Seconds(5)).code(), absl::StatusCode::kUnavailable);
}

TEST_F(SessionTest, WaitsLongerOnceItHasBeenRegistered) {
  StartServer();
  StartSession(absl::StrCat("127.0.0.1:", port_), absl::Seconds(1), absl::Seconds(30));
  ASSERT_TRUE(WaitForDirective(v1::Directive::kRegistered));
  StopServer();
  clock_.Sleep(absl::Milliseconds(1500));
  StartServer(port_);
  EXPECT_TRUE(WaitForDirective(v1::Directive::kRegistered, 2));
}

TEST_F(SessionTest, SaysWhichTermItKnowsOf) {
  coordinator_.SetTerm(5);
  StartServer();
  StartSession();
  EXPECT_TRUE(coordinator_.WaitUntil([](const auto& messages) {
    return !messages.empty() && messages[0].term() == 0 && messages.back().has_heartbeat() &&
           messages.back().term() == 5;
  }));
  coordinator_.BreakStream();
  EXPECT_TRUE(coordinator_.WaitUntil([](const auto& messages) {
    return Count(messages, v1::TaskMessage::kRegister) == 2 && messages.back().term() == 5;
  }));
  EXPECT_EQ(session_->term(), 5u);
}

TEST_F(SessionTest, TakesNoNoticeOfACoordinatorThatWasReplaced) {
  coordinator_.SetTerm(3);
  term_ = 5;
  StartServer();
  StartSession();
  EXPECT_TRUE(coordinator_.WaitUntil([](const auto& messages) {
    return Count(messages, v1::TaskMessage::kRegister) >= 2 && messages[0].term() == 5;
  }));
  EXPECT_EQ(log_.last_problem(), "a coordinator of term 3 speaks; this task knows of term 5 and takes no notice");
  {
    MutexLock lock(mu_);
    EXPECT_TRUE(directives_.empty());
  }
  // Until its successor is there.
  coordinator_.SetTerm(6);
  EXPECT_TRUE(WaitForDirective(v1::Directive::kRegistered));
  EXPECT_EQ(session_->term(), 6u);
}

TEST_F(SessionTest, AHeartbeatComesBeforeWhatIsSentAfterIt) {
  StartServer();
  StartSession();
  ASSERT_TRUE(WaitForDirective(v1::Directive::kRegistered));
  for (uint64_t id = 1; id <= 20; ++id) {
    session_->Beat();
    v1::TaskMessage message;
    message.mutable_shard_request()->set_request_id(id);
    session_->Send(message);
  }
  ASSERT_TRUE(WaitForDirective(v1::Directive::kShardGrant, 20));
  EXPECT_TRUE(coordinator_.WaitUntil([](const auto& messages) {
    for (size_t i = 1; i < messages.size(); ++i) {
      const v1::TaskMessage& before = messages[i - 1];
      if (!messages[i].has_shard_request()) continue;
      if (!before.has_heartbeat() || before.heartbeat().progress().step() != 3) return false;
    }
    return true;
  }));
}

TEST_F(SessionTest, OnEveryStreamAHeartbeatComesBeforeWhatWasQueued) {
  StartServer();
  const std::string address = absl::StrCat("127.0.0.1:", port_);
  StopServer();
  StartSession(address);
  v1::TaskMessage message;
  message.mutable_shard_request()->set_request_id(9);
  session_->Send(message);
  StartServer(port_);
  ASSERT_TRUE(WaitForDirective(v1::Directive::kShardGrant));
  EXPECT_TRUE(coordinator_.WaitUntil([](const auto& messages) {
    return messages.size() >= 3 && messages[0].has_register_() && messages[1].has_heartbeat();
  }));
}

TEST_F(SessionTest, RefusesIncompleteOptions) {
  EXPECT_EQ(Session::Create({}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace rubato
