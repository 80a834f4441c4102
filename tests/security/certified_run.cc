#include "tests/security/certified_run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/audit/audit.h"
#include "common/config/fingerprint.h"
#include "common/config/load.h"
#include "common/random.h"
#include "common/storage/file.h"
#include "worker/worker_task.h"

namespace rubato {
namespace {

constexpr absl::Duration kTimeout = absl::Minutes(2);
constexpr absl::Duration kPoll = absl::Milliseconds(20);

// Weights of 4 MiB: what a client asks for and does not read is worth something.
constexpr char kJob[] = R"(
  name: "hunted"
  cluster { servers: 1 workers: 2 lease_seconds: 60 shared_memory: OFF update_log: true }
  model {
    input_shape: 64
    layers { linear { units: 1000 } }
    layers { relu {} }
    layers { linear { units: 1000 } }
    layers { relu {} }
    layers { linear { units: 3 } }
    loss: SOFTMAX_CROSS_ENTROPY
  }
  data { teacher { train_examples: 4000 } }
  optimizer { algorithm: SGD learning_rate: 0.01 }
  consistency { mode: SYNC }
  training { batch_size: 8 epochs: 1000 device: CPU }
)";

v1::TaskId Task(v1::TaskId::Role role, uint32_t index) {
  v1::TaskId task;
  task.set_role(role);
  task.set_index(index);
  task.set_incarnation(SystemRandom64());
  return task;
}

v1::JobConfig ConfigOf(const CertifiedJob& job) {
  auto config = ParseJobConfig(kJob, "job.textproto", {absl::StrCat("run_directory=", JoinPath(job.folder(), "run"))});
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

worker::WorkerTask::Options WorkerOptions(const CertifiedJob& job, const v1::JobConfig& config, uint32_t index,
                                          const std::string& coordinator, Clock* clock, Logger* log) {
  worker::WorkerTask::Options options;
  options.config = config;
  options.task = Task(v1::TaskId::WORKER, index);
  options.coordinator = coordinator;
  options.security = job.As(Party::kWorker, index);
  options.clock = clock;
  options.log = log;
  options.abandon = [] { ADD_FAILURE() << "the CPU does not answer"; };
  options.factory.cuda = [](const CudaBackendOptions&) -> absl::StatusOr<std::unique_ptr<Backend>> {
    return absl::UnavailableError("there is none");
  };
  options.factory.count_gpus = [] { return absl::StatusOr<int>(0); };
  return options;
}

}  // namespace

absl::Status RunCertifiedWorker(const CertifiedJob& job, uint32_t index, const std::string& coordinator) {
  RealClock clock;
  Logger log("worker", &clock);
  Health health;
  worker::WorkerTask::Options options = WorkerOptions(job, ConfigOf(job), index, coordinator, &clock, &log);
  options.health = &health;
  return worker::WorkerTask(std::move(options)).Run();
}

CertifiedRun::CertifiedRun(const CertifiedJob* job) : job_(job), config_(ConfigOf(*job)) {
  coordinator::JobRunner::Options options;
  options.config = config_;
  options.config_fingerprint = ConfigFingerprint(config_);
  options.job_fingerprint = kFingerprint;
  options.clock = &clock_;
  options.log = &log_;
  auto runner = coordinator::JobRunner::Create(std::move(options));
  EXPECT_TRUE(runner.ok()) << runner.status();
  runner_ = *std::move(runner);
  service_ = std::make_unique<coordinator::CoordinatorService>(runner_.get());
  service_->SetRefusals(&refusals_);
  security_ = job_->As(Party::kCoordinator);
  auto listener = coordinator::Listen("127.0.0.1:0", security_.get(), service_.get());
  EXPECT_TRUE(listener.ok()) << listener.status();
  listener_ = *std::move(listener);
  address_ = absl::StrCat("127.0.0.1:", listener_.port);
  StartServer();
  for (const uint32_t index : {0u, 1u}) StartWorker(index);
}

CertifiedRun::~CertifiedRun() {
  runner_->StopBecauseOf("the test is over");
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  listener_.server->Shutdown(std::chrono::system_clock::now());
}

void CertifiedRun::StartServer() {
  server::ServerTask::Options options;
  options.config = config_;
  options.task = Task(v1::TaskId::SERVER, 0);
  options.coordinator = address_;
  options.listen = "127.0.0.1:0";
  options.security = job_->As(Party::kServer);
  options.clock = &clock_;
  options.log = &log_;
  threads_.emplace_back([options = std::move(options)]() mutable {
    Health health;
    options.health = &health;
    (void)server::ServerTask(std::move(options)).Run();  // Stopped.
  });
}

void CertifiedRun::StartWorker(uint32_t index) {
  worker::WorkerTask::Options options = WorkerOptions(*job_, config_, index, address_, &clock_, &log_);
  threads_.emplace_back([options = std::move(options)]() mutable {
    Health health;
    options.health = &health;
    (void)worker::WorkerTask(std::move(options)).Run();  // Stopped.
  });
}

v1::JobStatus CertifiedRun::Status() {
  std::optional<v1::JobStatus> status = runner_->AwaitStatus(kTimeout);
  EXPECT_TRUE(status.has_value()) << "the coordinator does not answer";
  return status.value_or(v1::JobStatus());
}

int CertifiedRun::server_port() {
  const v1::JobStatus status = Status();
  for (const v1::TaskStatus& task : status.tasks()) {
    if (task.task().role() != v1::TaskId::SERVER) continue;
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(task.address().substr(task.address().rfind(':') + 1), &port)) << task.address();
    return port;
  }
  ADD_FAILURE() << "there is no server";
  return 0;
}

int64_t CertifiedRun::AwaitSteps(int64_t more) {
  const absl::Time deadline = clock_.Now() + kTimeout;
  std::optional<int64_t> first;
  for (; clock_.Now() < deadline; clock_.Sleep(kPoll)) {
    const v1::JobStatus status = Status();
    if (status.phase() != v1::JobStatus::TRAINING) continue;
    if (!first.has_value()) first = status.step();
    if (status.step() >= *first + more) return status.step();
  }
  ADD_FAILURE() << "the job does not go on: " << Status().waiting_for() << " " << Status().error();
  return -1;
}

void CertifiedRun::ExpectUnharmed(const v1::JobStatus& begun) {
  const v1::JobStatus now = Status();
  EXPECT_EQ(now.phase(), v1::JobStatus::TRAINING) << now.error();
  EXPECT_EQ(now.plan().generation(), begun.plan().generation());
  EXPECT_EQ(now.plan().amendment(), begun.plan().amendment());
  EXPECT_EQ(now.term(), begun.term());
  ASSERT_EQ(now.tasks_size(), begun.tasks_size());
  for (int i = 0; i < now.tasks_size(); ++i) {
    EXPECT_EQ(now.tasks(i).state(), v1::TaskStatus::ALIVE) << now.tasks(i).DebugString();
    EXPECT_EQ(now.tasks(i).task().incarnation(), begun.tasks(i).task().incarnation()) << now.tasks(i).DebugString();
  }
}

void CertifiedRun::StopAndAudit() {
  runner_->StopBecauseOf("the test is over");
  EXPECT_TRUE(runner_->Wait(kTimeout).has_value()) << "the job does not stop";
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  const absl::StatusOr<AuditReport> audit = AuditRun(config_.run_directory());
  ASSERT_TRUE(audit.ok()) << audit.status();
  EXPECT_TRUE(audit->held());
  for (const InvariantReport& invariant : audit->invariants) EXPECT_TRUE(invariant.held()) << invariant.counterexample;
  // The last one, and those before it, of both workers in all chunks.
  EXPECT_GT(audit->pushes, 0);
  EXPECT_EQ(audit->terms.size(), 1u);
}

}  // namespace rubato
