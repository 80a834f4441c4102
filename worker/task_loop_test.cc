// Tasks that a coordinator in this process tells to restart.
#include "worker/task_loop.h"

#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/config/load.h"
#include "common/health/health.h"
#include "common/log.h"
#include "proto/coordinator.grpc.pb.h"
#include "worker/evaluator_task.h"
#include "worker/worker_task.h"

namespace rubato::worker {
namespace {

constexpr char kJob[] = R"(
  name: "restart"
  cluster { workers: 1 evaluators: 1 }
  model { input_shape: 6 layers { linear { units: 3 } } loss: SOFTMAX_CROSS_ENTROPY }
  data { teacher { train_examples: 100 test_examples: 100 } }
  optimizer { algorithm: SGD learning_rate: 0.1 }
  consistency { mode: SYNC }
  training { batch_size: 16 max_steps: 4 device: CPU }
  evaluation { batch_size: 32 }
)";

// Answers Register number i with Registered and then what `say` returns, and remembers what it was told.
class ScriptedCoordinator final : public v1::Coordinator::Service {
 public:
  using Say = std::function<v1::Directive(size_t registrations)>;

  explicit ScriptedCoordinator(Say say) : say_(std::move(say)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~ScriptedCoordinator() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status Session(grpc::ServerContext*,
                       grpc::ServerReaderWriter<v1::Directive, v1::TaskMessage>* stream) override {
    v1::TaskMessage message;
    while (stream->Read(&message)) {
      const size_t registrations = Remember(message);
      if (!message.has_register_()) continue;
      v1::Directive directive;
      directive.mutable_registered()->set_lease_seconds(10);
      stream->Write(directive);
      directive = say_(registrations);
      if (directive.body_case() != v1::Directive::BODY_NOT_SET) stream->Write(directive);
    }
    return grpc::Status::OK;
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  std::vector<v1::TaskMessage> Told(v1::TaskMessage::BodyCase body) {
    std::vector<v1::TaskMessage> told;
    MutexLock lock(mu_);
    for (const v1::TaskMessage& message : messages_) {
      if (message.body_case() == body) told.push_back(message);
    }
    return told;
  }

 private:
  // How many have been registered.
  size_t Remember(const v1::TaskMessage& message) {
    MutexLock lock(mu_);
    messages_.push_back(message);
    return static_cast<size_t>(std::count_if(messages_.begin(), messages_.end(),
                                             [](const v1::TaskMessage& other) { return other.has_register_(); }));
  }

  const Say say_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  Mutex mu_;
  std::vector<v1::TaskMessage> messages_ ABSL_GUARDED_BY(mu_);
};

v1::Directive Restart(uint64_t term) {
  v1::Directive directive;
  directive.set_term(term);
  directive.mutable_restart()->set_reason("server 1 was lost");
  return directive;
}

v1::Directive Done() {
  v1::Directive directive;
  directive.mutable_stop()->set_kind(v1::Stop::DONE);
  return directive;
}

template <typename Task>
class TaskLoopTest : public testing::Test {
 protected:
  std::unique_ptr<TaskLoop> MakeLoop(const std::string& coordinator) {
    return std::make_unique<TaskLoop>([this, coordinator](ComputeTask::Legacy legacy) {
      ComputeTask::Options options;
      options.config = *ParseJobConfig(kJob, "job.textproto", {"run_directory=" + testing::TempDir() + "/restart"});
      options.task.set_role(kEvaluates ? v1::TaskId::EVALUATOR : v1::TaskId::WORKER);
      options.task.set_incarnation(100 + static_cast<uint64_t>(legacies_.size()));
      options.coordinator = coordinator;
      options.metrics_listen = "127.0.0.1:0";
      options.health = &health_;
      options.clock = &clock_;
      options.log = &log_;
      options.abandon = [] {};
      options.legacy = legacy;
      legacies_.push_back(std::move(legacy));
      return std::make_unique<Task>(std::move(options));
    });
  }

  static constexpr bool kEvaluates = std::is_same_v<Task, EvaluatorTask>;
  RealClock clock_;
  Health health_;
  Logger log_{"task", &clock_};
  // With which an incarnation began, each.
  std::vector<ComputeTask::Legacy> legacies_;
};

using Tasks = testing::Types<WorkerTask, EvaluatorTask>;
TYPED_TEST_SUITE(TaskLoopTest, Tasks);

TYPED_TEST(TaskLoopTest, ComesBackAsAnotherIncarnationAsOftenAsItIsTold) {
  ScriptedCoordinator coordinator([](size_t registrations) { return registrations < 3 ? Restart(4) : Done(); });
  const std::unique_ptr<TaskLoop> loop = this->MakeLoop(coordinator.address());
  const absl::Status status = loop->Run();
  EXPECT_TRUE(status.ok()) << status;
  const std::vector<v1::TaskMessage> registered = coordinator.Told(v1::TaskMessage::kRegister);
  ASSERT_EQ(registered.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(registered[i].task().incarnation(), 100 + i);
    EXPECT_EQ(registered[i].term(), i == 0 ? 0u : 4u);
    // It shows its metrics where it did.
    EXPECT_EQ(registered[i].register_().metrics_address(), registered[0].register_().metrics_address());
  }
  // Those before went without a word, and what they had read stays.
  const std::vector<v1::TaskMessage> left = coordinator.Told(v1::TaskMessage::kLeaving);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].task().incarnation(), 102u);
  EXPECT_EQ(left[0].leaving().error(), "");
  EXPECT_EQ(this->legacies_[0].dataset, nullptr);
  EXPECT_NE(this->legacies_[1].dataset, nullptr);
  EXPECT_EQ(this->legacies_[1].dataset, this->legacies_[2].dataset);
  EXPECT_FALSE(loop->refused());
}

TYPED_TEST(TaskLoopTest, NoneBeginsAfterItWasAskedToStop) {
  const std::unique_ptr<TaskLoop> drained = this->MakeLoop("127.0.0.1:1");
  drained->Drain();
  EXPECT_TRUE(drained->Run().ok());
  const std::unique_ptr<TaskLoop> cancelled = this->MakeLoop("127.0.0.1:1");
  cancelled->Drain();
  cancelled->Cancel(absl::AbortedError("stopped by SIGTERM"));
  EXPECT_EQ(cancelled->Run(), absl::AbortedError("stopped by SIGTERM"));
  EXPECT_TRUE(this->legacies_.empty());
}

TYPED_TEST(TaskLoopTest, ASignalReachesTheIncarnationAtWork) {
  std::atomic<bool> second = false;
  ScriptedCoordinator coordinator([&](size_t registrations) {
    second = registrations == 2;
    return registrations == 1 ? Restart(4) : v1::Directive();
  });
  const std::unique_ptr<TaskLoop> loop = this->MakeLoop(coordinator.address());
  std::thread signals([&] {
    while (!second) std::this_thread::yield();
    loop->Drain();
  });
  const absl::Status status = loop->Run();
  signals.join();
  EXPECT_TRUE(status.ok()) << status;
  const std::vector<v1::TaskMessage> left = coordinator.Told(v1::TaskMessage::kLeaving);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].task().incarnation(), 101u);
  EXPECT_TRUE(left[0].leaving().drained());
}

TYPED_TEST(TaskLoopTest, ATaskThatDrainsIsNotStartedAgain) {
  TaskLoop* running = nullptr;
  ScriptedCoordinator coordinator([&](size_t) {
    running->Drain();
    return Restart(4);
  });
  const std::unique_ptr<TaskLoop> loop = this->MakeLoop(coordinator.address());
  running = loop.get();
  const absl::Status status = loop->Run();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(this->legacies_.size(), 1u);
}

// The first signal lets it say goodbye to a coordinator that is away; the second ends that.
TYPED_TEST(TaskLoopTest, ASecondSignalEndsALongGoodbye) {
  std::atomic<bool> registered = false;
  auto coordinator = std::make_unique<ScriptedCoordinator>([&](size_t) {
    registered = true;
    return v1::Directive();
  });
  const std::unique_ptr<TaskLoop> loop = this->MakeLoop(coordinator->address());
  const absl::Time begin = this->clock_.Now();
  std::thread signals([&] {
    while (!registered) std::this_thread::yield();
    coordinator.reset();
    loop->Drain();
    this->clock_.Sleep(absl::Milliseconds(300));
    loop->Cancel(absl::AbortedError("stopped by SIGTERM"));
  });
  loop->Run().IgnoreError();
  signals.join();
  // Not as long as cluster.start_timeout_seconds.
  EXPECT_LT(this->clock_.Now() - begin, absl::Seconds(30));
  EXPECT_THAT(this->log_.last_problem(), testing::HasSubstr("leaves without the coordinator's knowledge"));
}

}  // namespace
}  // namespace rubato::worker
