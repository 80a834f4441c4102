#ifndef RUBATO_COMMON_SESSION_TESTING_SESSION_FIXTURE_H_
#define RUBATO_COMMON_SESSION_TESTING_SESSION_FIXTURE_H_

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
#include "common/session/session.h"

namespace rubato {

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

inline int Count(const std::vector<v1::TaskMessage>& messages, v1::TaskMessage::BodyCase body) {
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

}  // namespace rubato

#endif  // RUBATO_COMMON_SESSION_TESTING_SESSION_FIXTURE_H_
