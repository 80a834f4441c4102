#include "tests/integration/whole_job.h"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/fingerprint.h"
#include "common/health/health.h"
#include "common/mutex.h"
#include "common/random.h"

namespace rubato {
namespace {

constexpr absl::Duration kTimeout = absl::Minutes(2);

v1::TaskId Task(v1::TaskId::Role role, uint32_t index) {
  v1::TaskId task;
  task.set_role(role);
  task.set_index(index);
  task.set_incarnation(SystemRandom64());
  return task;
}

}  // namespace

WholeJob::WholeJob(const v1::JobConfig& config) : config_(config), worker_status_(config.cluster().workers()) {
  coordinator::JobRunner::Options options;
  options.config = config_;
  options.config_fingerprint = ConfigFingerprint(config_);
  options.job_fingerprint = SystemRandom64();
  options.clock = &clock_;
  options.log = &log_;
  auto runner = coordinator::JobRunner::Create(std::move(options));
  EXPECT_TRUE(runner.ok()) << runner.status();
  runner_ = *std::move(runner);
  service_ = std::make_unique<coordinator::CoordinatorService>(runner_.get());
  auto listener = coordinator::Listen("127.0.0.1:0", nullptr, service_.get());
  EXPECT_TRUE(listener.ok()) << listener.status();
  listener_ = *std::move(listener);
  address_ = absl::StrCat("127.0.0.1:", listener_.port);
}

WholeJob::~WholeJob() {
  runner_->StopBecauseOf("the test is over");
  JoinThreads();
  listener_.server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
}

void WholeJob::StartServer(uint32_t index) {
  server::ServerTask::Options options;
  options.config = config_;
  options.task = Task(v1::TaskId::SERVER, index);
  options.coordinator = address_;
  options.listen = "127.0.0.1:0";
  options.clock = &clock_;
  options.log = &log_;
  threads_.emplace_back([options = std::move(options)]() mutable {
    Health health;
    options.health = &health;
    server::ServerTask task(std::move(options));
    const absl::Status status = task.Run();
    EXPECT_TRUE(status.ok()) << status;
  });
}

void WholeJob::StartWorker(uint32_t index, std::unique_ptr<Backend> backend, std::function<void()> abandon) {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(std::move(backend));
  StartWorkerOn(index, std::move(backends), std::move(abandon));
}

template <typename Options>
void WholeJob::Prepare(v1::TaskId::Role role, uint32_t index, std::vector<std::unique_ptr<Backend>> backends,
                       std::function<void()> abandon, Options* options) {
  options->config = config_;
  options->config.mutable_training()->set_gpus(static_cast<uint32_t>(backends.size()));
  options->task = Task(role, index);
  options->coordinator = address_;
  options->clock = &clock_;
  options->log = &log_;
  options->abandon = std::move(abandon);
  // Functions are copied, and backends are not.
  auto given = std::make_shared<std::vector<std::unique_ptr<Backend>>>(std::move(backends));
  options->factory.cuda = [given](const CudaBackendOptions& cuda) { return std::move((*given)[cuda.device_index]); };
}

void WholeJob::StartWorkerOn(uint32_t index, std::vector<std::unique_ptr<Backend>> backends,
                             std::function<void()> abandon) {
  worker::WorkerTask::Options options;
  Prepare(v1::TaskId::WORKER, index, std::move(backends), std::move(abandon), &options);
  threads_.emplace_back([this, index, options = std::move(options)]() mutable {
    Health health;
    options.health = &health;
    worker::WorkerTask task(std::move(options));
    worker_status_[index] = task.Run();
  });
}

void WholeJob::StartEvaluator(uint32_t index, std::unique_ptr<Backend> backend, std::function<void()> abandon) {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(std::move(backend));
  worker::EvaluatorTask::Options options;
  Prepare(v1::TaskId::EVALUATOR, index, std::move(backends), std::move(abandon), &options);
  threads_.emplace_back([this, options = std::move(options)]() mutable {
    Health health;
    options.health = &health;
    worker::EvaluatorTask task(std::move(options));
    evaluator_status_ = task.Run();
  });
}

absl::Status WholeJob::AwaitEnd() {
  const std::optional<absl::Status> ended = runner_->Wait(kTimeout);
  return ended.value_or(absl::DeadlineExceededError("the job does not end"));
}

void WholeJob::JoinThreads() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

absl::Status WholeJob::WorkerStatus(uint32_t index) {
  JoinThreads();
  return worker_status_[index];
}

absl::Status WholeJob::EvaluatorStatus() {
  JoinThreads();
  return evaluator_status_;
}

v1::JobStatus WholeJob::JobStatus() {
  // The answer comes on the runner's thread.
  struct Answer {
    Mutex mu;
    CondVar changed;
    std::optional<v1::JobStatus> status ABSL_GUARDED_BY(mu);
  };
  auto answer = std::make_shared<Answer>();
  runner_->GetStatus([answer](v1::JobStatus status) {
    MutexLock lock(answer->mu);
    answer->status = std::move(status);
    answer->changed.NotifyAll();
  });
  MutexLock lock(answer->mu);
  while (!answer->status.has_value()) answer->changed.Wait(answer->mu);
  return *answer->status;
}

}  // namespace rubato
