#include "server/server_task.h"

#include <fcntl.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/config/load.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/storage/checkpoint.h"
#include "common/storage/file.h"
#include "common/task.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/incarnations.h"
#include "server/part_files.h"
#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(30);

constexpr char kJob[] = R"(
  name: "job"
  cluster { workers: 1 shared_memory: OFF }
  model { input_shape: 6 layers { linear { units: 3 no_bias: true } } loss: SOFTMAX_CROSS_ENTROPY }
  data { teacher { train_examples: 100 test_examples: 100 } }
  optimizer { algorithm: SGD learning_rate: 0.1 }
  consistency { mode: SYNC }
  training { batch_size: 16 max_steps: 4 }
)";

using Messages = std::vector<v1::TaskMessage>;

int Count(const Messages& messages, v1::TaskMessage::BodyCase body) {
  return static_cast<int>(std::count_if(messages.begin(), messages.end(), [body](const v1::TaskMessage& message) {
    return message.body_case() == body;
  }));
}

// A coordinator that registers whoever comes, remembers what it is told, and says what a test wants.
class FakeCoordinator final : public v1::Coordinator::Service {
 public:
  FakeCoordinator() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeCoordinator() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  // To the task that registered last.
  void Tell(const v1::Directive& directive) {
    MutexLock lock(mu_);
    ASSERT_NE(stream_, nullptr);
    stream_->Write(directive);
  }
  bool WaitUntil(const std::function<bool(const Messages&)>& condition) {
    const absl::Time deadline = absl::Now() + kTimeout;
    MutexLock lock(mu_);
    while (!condition(messages_)) {
      if (absl::Now() > deadline) return false;
      changed_.WaitFor(mu_, absl::Seconds(1));
    }
    return true;
  }
  Messages messages() {
    MutexLock lock(mu_);
    return messages_;
  }

 private:
  using Stream = grpc::ServerReaderWriter<v1::Directive, v1::TaskMessage>;

  grpc::Status Session(grpc::ServerContext*, Stream* stream) override {
    v1::TaskMessage message;
    while (stream->Read(&message)) {
      MutexLock lock(mu_);
      if (message.has_register_()) {
        stream_ = stream;
        v1::Directive registered;
        registered.mutable_registered()->set_lease_seconds(0.2);
        stream_->Write(registered);
      }
      messages_.push_back(message);
      changed_.NotifyAll();
    }
    MutexLock lock(mu_);
    if (stream_ == stream) stream_ = nullptr;
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  Mutex mu_;
  CondVar changed_;
  Messages messages_ ABSL_GUARDED_BY(mu_);
  Stream* stream_ ABSL_GUARDED_BY(mu_) = nullptr;
};

class ServerTaskTest : public testing::Test {
 protected:
  ServerTaskTest()
      : run_(JoinPath(
            testing::TempDir(),
            absl::StrCat("server_task_test_", testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    EXPECT_TRUE(MakeDirectories(run_).ok());
  }

  ServerTask::Options Options(uint64_t incarnation, std::vector<std::string> overrides = {}) {
    overrides.push_back("run_directory=" + run_);
    absl::StatusOr<v1::JobConfig> config = ParseJobConfig(kJob, "job.textproto", overrides);
    EXPECT_TRUE(config.ok()) << config.status();
    ServerTask::Options options;
    options.config = config.value_or(v1::JobConfig());
    options.task.set_role(v1::TaskId::SERVER);
    options.task.set_incarnation(incarnation);
    options.coordinator = coordinator_.address();
    options.listen = "127.0.0.1:0";
    options.health = &health_;
    options.clock = &clock_;
    options.log = &log_;
    return options;
  }
  // Of the only chunk.
  static v1::Directive Job() {
    v1::Directive directive;
    directive.mutable_job()->set_fingerprint(77);
    directive.mutable_job()->add_chunks()->set_length(18);
    return directive;
  }
  void TellStop() {
    v1::Directive directive;
    directive.mutable_stop()->set_kind(v1::Stop::DONE);
    coordinator_.Tell(directive);
  }
  bool AwaitRegistrations(int count) {
    return coordinator_.WaitUntil([count](const Messages& messages) {
      return Count(messages, v1::TaskMessage::kRegister) >= count && Count(messages, v1::TaskMessage::kHeartbeat) > 0;
    });
  }
  bool AwaitServing(bool serving) {
    const absl::Time deadline = clock_.Now() + kTimeout;
    while (health_.serving() != serving) {
      if (clock_.Now() > deadline) return false;
      clock_.Sleep(absl::Milliseconds(1));
    }
    return true;
  }

  const std::string run_;
  RealClock clock_;
  Logger log_{"server 0", &clock_};
  Health health_;
  FakeCoordinator coordinator_;
};

// Writes the checkpoint that the job starts from, whose manifest is a pipe: a server that reads it waits until Release.
class SlowCheckpoint {
 public:
  explicit SlowCheckpoint(const std::string& run) : directory_(JoinPath(run, "checkpoints/final")) {
    PartFiles::Options options;
    options.directory = JoinPath(run, "checkpoints");
    options.task.set_role(v1::TaskId::SERVER);
    Part part;
    part.name = "final";
    ChunkSnapshot& chunk = part.chunks.emplace_back();
    chunk.record.set_tensor("linear0.weight");
    chunk.record.add_shape(3);
    chunk.record.add_shape(6);
    chunk.record.set_length(18);
    chunk.weights = FloatBuffer::Allocate(18);
    EXPECT_TRUE(PartFiles(options).Write(part, [] { return false; }).ok());
    EXPECT_TRUE(RenameFile(manifest_, kept_).ok());
    EXPECT_EQ(mkfifo(manifest_.c_str(), 0600), 0);
  }

  const std::string& directory() const { return directory_; }
  // Returns once somebody reads it.
  void Release() {
    absl::StatusOr<std::string> bytes = ReadFile(kept_);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const int pipe = open(manifest_.c_str(), O_WRONLY);
    ASSERT_GE(pipe, 0);
    EXPECT_TRUE(RenameFile(kept_, manifest_).ok());  // For whoever opens it from now on.
    EXPECT_EQ(write(pipe, bytes->data(), bytes->size()), static_cast<ssize_t>(bytes->size()));
    close(pipe);
  }

 private:
  const std::string directory_;
  const std::string manifest_ = JoinPath(directory_, "server-0.manifest");
  const std::string kept_ = JoinPath(directory_, "kept");
};

// A server that read a checkpoint for longer than its lease was silent meanwhile, and was evicted.
TEST_F(ServerTaskTest, AStartThatTakesLongDoesNotHoldUpHeartbeats) {
  SlowCheckpoint slow(run_);
  ServerTask task(Options(1, {"training.start_from=" + slow.directory()}));
  absl::Status ended;
  std::thread thread([&] { ended = task.Run(); });
  ASSERT_TRUE(AwaitRegistrations(1));
  coordinator_.Tell(Job());
  v1::Directive commit;
  *commit.mutable_commit()->mutable_plan() = MakePlan(1, v1::SYNC, 0, {0});
  coordinator_.Tell(commit);
  const int before = Count(coordinator_.messages(), v1::TaskMessage::kHeartbeat);
  EXPECT_TRUE(coordinator_.WaitUntil(
      [before](const Messages& messages) { return Count(messages, v1::TaskMessage::kHeartbeat) >= before + 5; }));
  EXPECT_EQ(Count(coordinator_.messages(), v1::TaskMessage::kPlanAck), 0);
  slow.Release();
  // What came meanwhile is done after it.
  EXPECT_TRUE(
      coordinator_.WaitUntil([](const Messages& messages) { return Count(messages, v1::TaskMessage::kPlanAck) == 1; }));
  TellStop();
  thread.join();
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_FALSE(task.restarts());
  EXPECT_EQ(Count(coordinator_.messages(), v1::TaskMessage::kLeaving), 1);
}

TEST_F(ServerTaskTest, AStartThatFailsEndsTheTaskWithThatError) {
  ServerTask task(Options(1, {absl::StrCat("training.start_from=", run_, "/nothing")}));
  absl::Status ended;
  std::thread thread([&] { ended = task.Run(); });
  ASSERT_TRUE(AwaitRegistrations(1));
  coordinator_.Tell(Job());
  thread.join();
  EXPECT_NE(ended.message().find("training.start_from"), absl::string_view::npos) << ended;
  const Messages messages = coordinator_.messages();
  EXPECT_EQ(messages.back().leaving().error(), ended.message());
  EXPECT_EQ(messages.back().leaving().cause(), v1::Leaving::CAUSE_UNSPECIFIED);
}

TEST_F(ServerTaskTest, SaysThatItCannotReadWhatTheJobGoesOnFrom) {
  ServerTask task(Options(1));
  absl::Status ended;
  std::thread thread([&] { ended = task.Run(); });
  ASSERT_TRUE(AwaitRegistrations(1));
  v1::Directive job = Job();
  job.mutable_job()->mutable_restore()->set_id(3);
  job.mutable_job()->mutable_restore()->set_name("step5");
  coordinator_.Tell(job);
  thread.join();
  EXPECT_NE(ended.message().find("cannot go back to the cut"), absl::string_view::npos) << ended;
  const Messages messages = coordinator_.messages();
  EXPECT_EQ(messages.back().leaving().error(), ended.message());
  EXPECT_EQ(messages.back().leaving().cause(), v1::Leaving::CANNOT_RESTORE);
}

TEST_F(ServerTaskTest, ARestartMakesANewIncarnationOnTheSamePortWithoutLeaving) {
  std::string listen = "127.0.0.1:0";
  uint64_t incarnation = 0;
  Incarnations incarnations([&] {
    ServerTask::Options options = Options(++incarnation);
    options.listen = listen;
    options.listen_timeout = kTimeout;
    EXPECT_FALSE(health_.serving());
    return std::make_unique<ServerTask>(std::move(options));
  });
  absl::Status ended;
  std::thread thread([&] { ended = incarnations.Run(); });
  ASSERT_TRUE(AwaitRegistrations(1));
  EXPECT_TRUE(AwaitServing(true));
  v1::Directive restart;
  restart.mutable_restart()->set_reason("server 1 is lost");
  const std::string address = coordinator_.messages().front().register_().address();  // ":port"
  listen = "127.0.0.1" + address;
  coordinator_.Tell(Job());
  coordinator_.Tell(restart);
  ASSERT_TRUE(AwaitRegistrations(2));
  Messages registrations = coordinator_.messages();
  std::erase_if(registrations, [](const v1::TaskMessage& message) { return !message.has_register_(); });
  EXPECT_EQ(registrations[0].task().incarnation(), 1u);
  EXPECT_EQ(registrations[1].task().incarnation(), 2u);
  EXPECT_EQ(registrations[1].register_().address(), address);
  EXPECT_EQ(Count(coordinator_.messages(), v1::TaskMessage::kLeaving), 0);
  EXPECT_TRUE(AwaitServing(true));
  TellStop();
  thread.join();
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_FALSE(health_.serving());
}

TEST_F(ServerTaskTest, ASignalEndsItForGood) {
  ServerTask task(Options(1));
  absl::Status ended;
  std::thread thread([&] { ended = task.Run(); });
  ASSERT_TRUE(AwaitRegistrations(1));
  task.Cancel(absl::AbortedError("stopped by SIGTERM"));
  thread.join();
  EXPECT_EQ(ended, absl::AbortedError("stopped by SIGTERM"));
  EXPECT_FALSE(task.restarts());
}

}  // namespace
}  // namespace rubato::server
