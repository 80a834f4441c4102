#include "common/session/session.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rubato {
namespace {

// A coordinator that answers Register and remembers what it was told. A Session call lives on a thread of gRPC's.
class FakeCoordinator final : public v1::Coordinator::Service {
 public:
  grpc::Status Session(grpc::ServerContext* context,
                       grpc::ServerReaderWriter<v1::Directive, v1::TaskMessage>* stream) override {
    {
      MutexLock lock(mu_);
      context_ = context;
      ++sessions_;
      ++open_sessions_;
    }
    v1::TaskMessage message;
    while (stream->Read(&message)) {
      bool stop = false;
      {
        MutexLock lock(mu_);
        messages_.push_back(message);
        stop = stop_after_register_ && message.has_register_();
        changed_.NotifyAll();
      }
      v1::Directive directive;
      directive.set_term(term());
      if (message.has_register_() && !refuse()) {
        directive.mutable_registered()->set_lease_seconds(0.2);
        stream->Write(directive);
      }
      if (message.has_leaving()) {
        switch (TakeFarewell()) {
          case Farewell::kAnswer:
            break;
          case Farewell::kBreak:
            context->TryCancel();
            continue;
          case Farewell::kRestart:
            directive.mutable_restart()->set_reason("a server was lost");
            stream->Write(directive);
            continue;
        }
      }
      if (message.has_shard_request()) {
        directive.mutable_shard_grant()->set_request_id(message.shard_request().request_id());
        stream->Write(directive);
      }
      if (stop) {
        directive.mutable_stop()->set_error("enough");
        stream->Write(directive);
      }
    }
    MutexLock lock(mu_);
    context_ = nullptr;
    --open_sessions_;
    changed_.NotifyAll();
    return grpc::Status::OK;
  }

  // What it does when it has read Leaving. It ends the stream well, breaks it, or says Restart and waits.
  enum class Farewell { kAnswer, kBreak, kRestart };

  // The first ones; kAnswer afterwards.
  void AnswerFarewells(std::deque<Farewell> answers) {
    MutexLock lock(mu_);
    farewells_ = std::move(answers);
  }
  void SetTerm(uint64_t term) {
    MutexLock lock(mu_);
    term_ = term;
  }
  void BreakStream() {
    MutexLock lock(mu_);
    if (context_ != nullptr) context_->TryCancel();
  }
  void StopAfterRegister() {
    MutexLock lock(mu_);
    stop_after_register_ = true;
  }
  // Answers Register with Stop alone.
  void Refuse() {
    MutexLock lock(mu_);
    stop_after_register_ = true;
    refuse_ = true;
  }
  // Until `condition` holds of what has been received, ten seconds at most.
  bool WaitUntil(const std::function<bool(const std::vector<v1::TaskMessage>&)>& condition) {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    MutexLock lock(mu_);
    while (!condition(messages_)) {
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) return false;
      changed_.WaitFor(mu_, left);
    }
    return true;
  }
  // Until no session is open, ten seconds at most.
  bool WaitUntilAlone() {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    MutexLock lock(mu_);
    while (open_sessions_ > 0) {
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) return false;
      changed_.WaitFor(mu_, left);
    }
    return true;
  }
  int sessions() {
    MutexLock lock(mu_);
    return sessions_;
  }

 private:
  bool refuse() {
    MutexLock lock(mu_);
    return refuse_;
  }
  uint64_t term() {
    MutexLock lock(mu_);
    return term_;
  }
  Farewell TakeFarewell() {
    MutexLock lock(mu_);
    if (farewells_.empty()) return Farewell::kAnswer;
    const Farewell answer = farewells_.front();
    farewells_.pop_front();
    return answer;
  }

  Mutex mu_;
  CondVar changed_;
  std::vector<v1::TaskMessage> messages_ ABSL_GUARDED_BY(mu_);
  grpc::ServerContext* context_ ABSL_GUARDED_BY(mu_) = nullptr;
  int sessions_ ABSL_GUARDED_BY(mu_) = 0;
  int open_sessions_ ABSL_GUARDED_BY(mu_) = 0;
  bool stop_after_register_ ABSL_GUARDED_BY(mu_) = false;
  bool refuse_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t term_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<Farewell> farewells_ ABSL_GUARDED_BY(mu_);
};

int Count(const std::vector<v1::TaskMessage>& messages, v1::TaskMessage::BodyCase body) {
  int count = 0;
  for (const v1::TaskMessage& message : messages) count += message.body_case() == body;
  return count;
}

class SessionTest : public testing::Test {
 protected:
  ~SessionTest() override {
    session_.reset();
    StopServer();
  }
  void StartServer(int port = 0) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(), &port_);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.RegisterService(&coordinator_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void StopServer() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  void StartSession(const std::string& address, absl::Duration give_up_after = absl::Seconds(30),
                    absl::Duration give_up_after_registered = absl::ZeroDuration()) {
    Session::Options options;
    options.coordinator = address;
    options.task.set_role(v1::TaskId::WORKER);
    options.task.set_index(1);
    options.task.set_incarnation(42);
    options.registration.set_train_examples(7);
    session_lives_ = true;
    options.heartbeat = [this] {
      CheckSessionLives();
      v1::Heartbeat heartbeat;
      heartbeat.mutable_progress()->set_step(3);
      return heartbeat;
    };
    options.on_directive = [this](const v1::Directive& directive) {
      CheckSessionLives();
      MutexLock lock(mu_);
      directives_.push_back(directive);
      changed_.NotifyAll();
    };
    options.on_lost = [this](const absl::Status& status) {
      CheckSessionLives();
      MutexLock lock(mu_);
      lost_ = status;
      changed_.NotifyAll();
    };
    options.give_up_after = give_up_after;
    options.give_up_after_registered = give_up_after_registered;
    options.term = term_;
    options.clock = &clock_;
    options.log = &log_;
    auto session = Session::Create(std::move(options));
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
    session_->Start();
  }
  void StartSession() { StartSession(absl::StrCat("127.0.0.1:", port_)); }
  void CheckSessionLives() { EXPECT_TRUE(session_lives_) << "a callback of a session that has been destroyed"; }
  void DestroySession() {
    session_.reset();
    session_lives_ = false;
  }
  bool WaitForDirective(v1::Directive::BodyCase body, int count = 1) {
    return WaitFor([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      int found = 0;
      for (const v1::Directive& directive : directives_) found += directive.body_case() == body;
      return found >= count;
    });
  }
  bool WaitFor(const std::function<bool()>& condition) {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    MutexLock lock(mu_);
    while (!condition()) {
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) return false;
      changed_.WaitFor(mu_, left);
    }
    return true;
  }

  RealClock clock_;
  Logger log_{"worker 1", &clock_};
  FakeCoordinator coordinator_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  Mutex mu_;
  CondVar changed_;
  std::vector<v1::Directive> directives_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> lost_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> session_lives_ = false;
  // Of an earlier incarnation.
  uint64_t term_ = 0;
  std::unique_ptr<Session> session_;
};

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

TEST_F(SessionTest, ARestartEndsTheGoodbye) {
  coordinator_.AnswerFarewells({FakeCoordinator::Farewell::kRestart});
  StartServer();
  StartSession();
  EXPECT_TRUE(session_->Leave("", absl::Seconds(10)).ok());
  EXPECT_TRUE(WaitForDirective(v1::Directive::kRestart));
  EXPECT_EQ(coordinator_.sessions(), 1);
}

TEST_F(SessionTest, HasMorePatienceOnceItHasBeenRegistered) {
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

TEST_F(SessionTest, RefusesIncompleteOptions) {
  EXPECT_EQ(Session::Create({}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace rubato
