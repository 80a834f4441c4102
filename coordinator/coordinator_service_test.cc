// The real service with fake tasks that speak through common/session, in one process over loopback.
#include "coordinator/coordinator_service.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/session/session.h"
#include "common/task.h"
#include "coordinator/testing/small_job.h"

namespace rubato::coordinator {
namespace {

constexpr uint64_t kFingerprint = 0xfeed;

v1::JobConfig Config(const std::string& directory) {
  v1::JobConfig config = SmallJob();
  config.set_run_directory(directory);
  config.mutable_cluster()->set_evaluators(1);
  config.mutable_cluster()->set_start_timeout_seconds(30);
  config.mutable_cluster()->set_wait_timeout_seconds(60);
  config.mutable_training()->set_epochs(1);
  return config;
}

// A task that answers as its role does, without weights or data. A worker takes shards only when it may.
class FakeTask {
 public:
  FakeTask(v1::TaskId::Role role, uint32_t index, uint64_t incarnation, const std::string& coordinator,
           const Clock* clock, uint64_t fingerprint = kFingerprint)
      : clock_(clock), log_(TaskName(role, index), clock) {
    Session::Options options;
    options.coordinator = coordinator;
    options.task = task_ = MakeTask(role, index, incarnation);
    options.registration = RegistrationOf(task_, fingerprint);
    options.heartbeat = [this] { return Beat(); };
    options.on_directive = [this](const v1::Directive& directive) { OnDirective(directive); };
    options.on_lost = [this](const absl::Status& status) {
      MutexLock lock(mu_);
      lost_ = status;
      changed_.NotifyAll();
    };
    options.clock = clock;
    options.log = &log_;
    auto session = Session::Create(std::move(options));
    EXPECT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
    session_->Start();
  }
  // Without a word, as a process that is killed.
  ~FakeTask() { session_.reset(); }

  // Lets a worker take shards until there are none.
  void Work() {
    {
      MutexLock lock(mu_);
      if (std::exchange(working_, true)) return;
    }
    Ask();
  }
  bool WaitFor(const std::function<bool(const std::vector<v1::Directive>&)>& condition) {
    const absl::Time deadline = clock_->Now() + absl::Seconds(20);
    MutexLock lock(mu_);
    while (!condition(received_)) {
      const absl::Duration left = deadline - clock_->Now();
      if (left <= absl::ZeroDuration()) return false;
      changed_.WaitFor(mu_, left);
    }
    return true;
  }
  bool WaitFor(v1::Directive::BodyCase body) {
    return WaitFor([&](const auto& received) {
      for (const v1::Directive& directive : received) {
        if (directive.body_case() == body) return true;
      }
      return false;
    });
  }
  std::string StopError() { return FirstStop().has_value() ? FirstStop()->error() : "(no Stop)"; }
  v1::Stop::Kind StopKind() { return FirstStop().has_value() ? FirstStop()->kind() : v1::Stop::KIND_UNSPECIFIED; }
  absl::Status Leave(const std::string& error = "") { return session_->Leave(error); }

 private:
  std::optional<v1::Stop> FirstStop() {
    MutexLock lock(mu_);
    for (const v1::Directive& directive : received_) {
      if (directive.has_stop()) return directive.stop();
    }
    return std::nullopt;
  }
  v1::Heartbeat Beat() {
    v1::Heartbeat heartbeat;
    MutexLock lock(mu_);
    if (task_.role() == v1::TaskId::WORKER) {
      v1::WorkerProgress* progress = heartbeat.mutable_progress();
      progress->set_generation(generation_);
      progress->set_examples_total(10 * static_cast<int64_t>(finished_.size()));
      progress->set_steps_total(2 * static_cast<int64_t>(finished_.size()));
      progress->set_step(progress->steps_total());
      progress->set_entry_wait_seconds(generation_ > 0 ? 0.001 : 0);
    }
    // Whatever is asked for is written at once.
    heartbeat.mutable_cut()->set_id(cut_);
    heartbeat.mutable_cut()->set_written(true);
    heartbeat.mutable_cut()->set_entered(true);
    return heartbeat;
  }
  void Ask() {
    v1::TaskMessage message;
    {
      MutexLock lock(mu_);
      message.mutable_shard_request()->set_request_id(request_id_);
      for (uint64_t shard : finished_) message.mutable_shard_request()->add_finished_shards(shard);
    }
    session_->Send(std::move(message));
  }
  void OnDirective(const v1::Directive& directive) {
    bool ask = false;
    {
      MutexLock lock(mu_);
      received_.push_back(directive);
      if (directive.has_job() && directive.job().has_plan()) generation_ = directive.job().plan().generation();
      if (directive.has_commit()) generation_ = directive.commit().plan().generation();
      if (directive.commit().plan().has_cut()) cut_ = directive.commit().plan().cut().id();
      // What was asked may have been lost with the old connection.
      if (directive.has_registered()) ask = working_;
      const v1::ShardGrant& grant = directive.shard_grant();
      if (directive.has_shard_grant() && grant.request_id() == request_id_ && grant.result() != v1::ShardGrant::DONE) {
        if (grant.result() == v1::ShardGrant::GRANTED) finished_.insert(grant.shard());
        ++request_id_;
        ask = true;
      }
      changed_.NotifyAll();
    }
    if (ask) Ask();
    std::optional<v1::TaskMessage> answer;
    if (task_.role() == v1::TaskId::SERVER) {
      answer = ServerAnswer(directive, /*started=*/6);
    } else if (directive.has_evaluate()) {
      answer.emplace();
      answer->mutable_evaluation()->set_evaluation_id(directive.evaluate().evaluation_id());
      answer->mutable_evaluation()->set_accuracy(0.5);
    }
    if (answer) session_->Send(*std::move(answer));
  }

  const Clock* const clock_;
  Logger log_;
  v1::TaskId task_;
  Mutex mu_;
  CondVar changed_;
  std::vector<v1::Directive> received_ ABSL_GUARDED_BY(mu_);
  uint64_t generation_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t cut_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t request_id_ ABSL_GUARDED_BY(mu_) = 1;
  bool working_ ABSL_GUARDED_BY(mu_) = false;
  std::set<uint64_t> finished_ ABSL_GUARDED_BY(mu_);
  absl::Status lost_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Session> session_;
};

class CoordinatorServiceTest : public testing::Test {
 protected:
  CoordinatorServiceTest()
      : directory_(absl::StrCat(testing::TempDir(), "/service-",
                                testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(directory_);
    Start(0, false);
  }
  ~CoordinatorServiceTest() override {
    tasks_.clear();
    Shutdown();
  }

  void Start(int port, bool resume) {
    JobRunner::Options options;
    options.config = Config(directory_);
    options.config_fingerprint = kFingerprint;
    options.job_fingerprint = 77;
    options.resume = resume;
    options.clock = &clock_;
    options.log = &log_;
    options.tick = absl::Milliseconds(20);
    auto runner = JobRunner::Create(std::move(options));
    ASSERT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
    service_ = std::make_unique<CoordinatorService>(runner_.get());
    auto listener = Listen(absl::StrCat("127.0.0.1:", port), nullptr, service_.get());
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    address_ = absl::StrCat("127.0.0.1:", listener_.port);
    stub_ = v1::Coordinator::NewStub(grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
  }
  void Shutdown() {
    if (listener_.server != nullptr) listener_.server->Shutdown(std::chrono::system_clock::now());
    listener_.server.reset();
    service_.reset();
    runner_.reset();
  }
  FakeTask& Add(v1::TaskId::Role role, uint32_t index, uint64_t incarnation = 1) {
    auto& task = tasks_[TaskName(role, index)];
    task = std::make_unique<FakeTask>(role, index, incarnation, address_, &clock_);
    return *task;
  }
  FakeTask& Get(const std::string& name) { return *tasks_.at(name); }
  void StartJob() {
    for (uint32_t i = 0; i < 2; ++i) {
      Add(v1::TaskId::SERVER, i);
      Add(v1::TaskId::WORKER, i);
    }
    Add(v1::TaskId::EVALUATOR, 0);
    ASSERT_TRUE(Get("worker 0").WaitFor(v1::Directive::kJob));
    ASSERT_TRUE(Get("worker 1").WaitFor(v1::Directive::kJob));
  }
  void WorkUntilDone(const std::string& name) {
    Get(name).Work();
    ASSERT_TRUE(Get(name).WaitFor([](const auto& received) {
      return !received.empty() && received.back().shard_grant().result() == v1::ShardGrant::DONE;
    }));
  }
  // Ends the job as its tasks would.
  void FinishJob() {
    WorkUntilDone("worker 0");
    for (const char* name : {"worker 0", "worker 1"}) EXPECT_TRUE(Get(name).Leave().ok());
    for (const char* name : {"server 0", "server 1", "evaluator 0"}) {
      ASSERT_TRUE(Get(name).WaitFor(v1::Directive::kStop));
      EXPECT_EQ(Get(name).StopError(), "");
      EXPECT_TRUE(Get(name).Leave().ok());
    }
  }
  v1::JobStatus Status() {
    grpc::ClientContext context;
    v1::JobStatus status;
    EXPECT_TRUE(stub_->GetStatus(&context, v1::GetStatusRequest(), &status).ok());
    return status;
  }
  grpc::Status Switch(v1::Mode mode, v1::SwitchModeReply* reply, absl::Duration timeout = absl::Seconds(20)) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
    v1::SwitchModeRequest request;
    request.set_mode(mode);
    return stub_->SwitchMode(&context, request, reply);
  }
  std::string Record() {
    std::ifstream file(directory_ + "/metrics.jsonl");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  RealClock clock_;
  Logger log_{"coordinator", &clock_};
  const std::string directory_;
  std::unique_ptr<JobRunner> runner_;
  std::unique_ptr<CoordinatorService> service_;
  Listener listener_;
  std::string address_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  std::map<std::string, std::unique_ptr<FakeTask>> tasks_;
};

TEST_F(CoordinatorServiceTest, RunsAJobFromStartToEnd) {
  StartJob();
  v1::SwitchModeReply reply;
  grpc::Status switched = Switch(v1::ASYNC, &reply);
  ASSERT_TRUE(switched.ok()) << switched.error_message();
  EXPECT_EQ(reply.plan().mode(), v1::ASYNC);
  EXPECT_EQ(reply.plan().first_step(), 7);
  EXPECT_EQ(Status().phase(), v1::JobStatus::TRAINING);
  FinishJob();
  std::optional<absl::Status> ended = runner_->Wait(absl::Seconds(20));
  ASSERT_TRUE(ended.has_value());
  EXPECT_TRUE(ended->ok()) << *ended;
  const std::string record = Record();
  for (const char* part : {R"({"start":{)", R"({"plan":{)", R"({"evaluation":{)", R"("final":true)",
                           R"("examples":100)", R"("ok":true)"}) {
    EXPECT_TRUE(absl::StrContains(record, part)) << part << " in\n" << record;
  }
}

TEST_F(CoordinatorServiceTest, AKilledCoordinatorGoesOnFromItsJournal) {
  StartJob();
  const int port = listener_.port;
  Shutdown();
  Start(port, true);
  EXPECT_EQ(Status().phase(), v1::JobStatus::TRAINING);
  FinishJob();
  std::optional<absl::Status> ended = runner_->Wait(absl::Seconds(20));
  ASSERT_TRUE(ended.has_value());
  EXPECT_TRUE(ended->ok()) << *ended;
}

TEST_F(CoordinatorServiceTest, ARestartedWorkerTakesTheOldOnesPlace) {
  StartJob();
  Add(v1::TaskId::WORKER, 1, 2);
  EXPECT_TRUE(Get("worker 1").WaitFor([](const auto& received) {
    for (const v1::Directive& directive : received) {
      const v1::Plan& plan = directive.commit().plan();
      if (plan.members_size() == 2 && plan.members(1).incarnation() == 2) return true;
    }
    return false;
  }));
  FinishJob();
}

TEST_F(CoordinatorServiceTest, ATaskOfAnotherConfigIsRefused) {
  FakeTask task(v1::TaskId::WORKER, 0, 1, address_, &clock_, kFingerprint + 1);
  ASSERT_TRUE(task.WaitFor(v1::Directive::kStop));
  EXPECT_TRUE(absl::StrContains(task.StopError(), "000000000000feee, the coordinator's 000000000000feed"))
      << task.StopError();
}

TEST_F(CoordinatorServiceTest, ASwitchThatHasToWaitSaysForWhom) {
  StartJob();
  // Worker 1 enters nothing more.
  tasks_.erase("worker 1");
  v1::SwitchModeReply reply;
  Switch(v1::ASYNC, &reply, absl::Seconds(3));
  grpc::Status second = Switch(v1::SYNC, &reply, absl::Seconds(1));
  EXPECT_EQ(second.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(absl::StrContains(second.error_message(), "worker 1")) << second.error_message();
}

TEST_F(CoordinatorServiceTest, ABadSwitchIsAnsweredWithTheField) {
  StartJob();
  v1::SwitchModeReply reply;
  grpc::Status status = Switch(v1::SSP, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(status.error_message(), "staleness_bound")) << status.error_message();
}

TEST_F(CoordinatorServiceTest, TheOperatorStopsTheJob) {
  StartJob();
  grpc::ClientContext context;
  v1::StopJobRequest request;
  request.set_reason("lunch");
  v1::StopJobReply reply;
  ASSERT_TRUE(stub_->StopJob(&context, request, &reply).ok());
  ASSERT_TRUE(Get("server 0").WaitFor(v1::Directive::kStop));
  EXPECT_EQ(Get("server 0").StopKind(), v1::Stop::STOPPED);
  EXPECT_EQ(Get("server 0").StopError(), "stopped by the operator at 127.0.0.1: lunch");
  for (auto& [name, task] : tasks_) EXPECT_TRUE(task->Leave().ok());
  std::optional<absl::Status> ended = runner_->Wait(absl::Seconds(20));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->message(), "stopped by the operator at 127.0.0.1: lunch");
}

TEST_F(CoordinatorServiceTest, ATakenPortIsAnErrorThatNamesIt) {
  auto second = Listen(address_, nullptr, service_.get());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(second.status().message(), address_)) << second.status();
}

TEST_F(CoordinatorServiceTest, ASessionMustBeginWithRegister) {
  grpc::ClientContext context;
  auto stream = stub_->Session(&context);
  v1::TaskMessage message;
  message.mutable_task()->set_role(v1::TaskId::WORKER);
  message.mutable_heartbeat();
  stream->Write(message);
  v1::Directive directive;
  EXPECT_FALSE(stream->Read(&directive));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(CoordinatorServiceTest, ASessionSpeaksForOneTask) {
  grpc::ClientContext context;
  auto stream = stub_->Session(&context);
  v1::TaskMessage message;
  message.mutable_task()->set_role(v1::TaskId::WORKER);
  message.mutable_task()->set_incarnation(5);
  message.mutable_register_()->set_protocol_version(kProtocolVersion);
  stream->Write(message);
  message.mutable_task()->set_index(1);
  message.mutable_heartbeat();
  stream->Write(message);
  v1::Directive directive;
  while (stream->Read(&directive)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(CoordinatorServiceTest, WorkersTellEachOtherThingsAlsoAcrossARestart) {
  const auto get = [this](double seconds) {
    grpc::ClientContext context;
    v1::GetValueRequest request;
    request.set_key("a");
    request.set_timeout_seconds(seconds);
    v1::GetValueReply reply;
    const grpc::Status status = stub_->GetValue(&context, request, &reply);
    return status.ok() ? reply.value() : absl::StrCat(static_cast<int>(status.error_code()));
  };
  const auto meet = [this](uint64_t round, uint32_t count) {
    grpc::ClientContext context;
    v1::BarrierRequest request;
    *request.mutable_task() = WorkerTask(1);
    request.set_name("b");
    request.set_round(round);
    request.set_count(count);
    request.set_timeout_seconds(0.05);
    v1::BarrierReply reply;
    return stub_->Barrier(&context, request, &reply);
  };
  EXPECT_EQ(get(0), absl::StrCat(static_cast<int>(grpc::StatusCode::NOT_FOUND)));
  grpc::ClientContext context;
  v1::PutValueRequest put;
  put.set_key("a");
  put.set_value("1");
  v1::PutValueReply reply;
  ASSERT_TRUE(stub_->PutValue(&context, put, &reply).ok());
  EXPECT_EQ(get(5), "1");
  EXPECT_TRUE(meet(1, 1).ok());
  const int port = listener_.port;
  Shutdown();
  Start(port, true);
  EXPECT_EQ(get(0), "1");
  EXPECT_TRUE(meet(1, 2).ok());  // Over before.
  const grpc::Status alone = meet(2, 2);
  EXPECT_EQ(alone.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(alone.error_message(), "barrier b waits for 2 workers; here are worker 1");
  StartJob();
  EXPECT_EQ(get(0), "1");
}

TEST(CoordinatorWithoutAJobTest, TakesTheModelAndSaysWhatItWaitsFor) {
  RealClock clock;
  v1::JobConfig config = SmallJob();
  config.clear_model();
  config.clear_data();
  config.clear_optimizer();
  ModelOffers offers(config, &clock);
  CoordinatorService::Before before;
  before.status.set_waiting_for("a model");
  std::string stopped;
  before.stop = [&](const std::string& reason) { stopped = reason; };
  CoordinatorService service(&offers, before);
  auto listener = Listen("127.0.0.1:0", nullptr, &service);
  ASSERT_TRUE(listener.ok()) << listener.status();
  auto stub = v1::Coordinator::NewStub(
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", listener->port), grpc::InsecureChannelCredentials()));
  {
    grpc::ClientContext context;
    v1::JobStatus status;
    ASSERT_TRUE(stub->GetStatus(&context, {}, &status).ok());
    EXPECT_EQ(status.waiting_for(), "a model");
  }
  {
    grpc::ClientContext context;
    auto session = stub->Session(&context);
    v1::Directive directive;
    EXPECT_FALSE(session->Read(&directive));
    EXPECT_EQ(session->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  {
    grpc::ClientContext context;
    v1::BarrierReply reply;
    EXPECT_EQ(stub->Barrier(&context, {}, &reply).error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  {
    grpc::ClientContext context;
    v1::OfferModelReply reply;
    v1::OfferModelRequest offer;
    EXPECT_EQ(stub->OfferModel(&context, offer, &reply).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  {
    grpc::ClientContext context;
    v1::StopJobReply reply;
    ASSERT_TRUE(stub->StopJob(&context, {}, &reply).ok());
    EXPECT_EQ(stopped, "stopped by the operator at 127.0.0.1");
  }
  listener->server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace
}  // namespace rubato::coordinator
