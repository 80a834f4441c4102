#ifndef RUBATO_TESTS_INTEGRATION_WHOLE_JOB_H_
#define RUBATO_TESTS_INTEGRATION_WHOLE_JOB_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/log.h"
#include "coordinator/coordinator_service.h"
#include "coordinator/job_runner.h"
#include "server/server_task.h"
#include "worker/evaluator_task.h"
#include "worker/worker_task.h"

namespace rubato {

// A job whose tasks run in this process, each as in its own program, over real sockets. Workers compute on what the
// test gives them. One thread.
class WholeJob {
 public:
  // `config` has its defaults and training.device CUDA; the coordinator runs at once.
  explicit WholeJob(const v1::JobConfig& config);
  ~WholeJob();

  void StartServer(uint32_t index);
  // `abandon` as in WorkerTask::Options.
  void StartWorker(
      uint32_t index, std::unique_ptr<Backend> backend, std::function<void()> abandon = [] {});
  // On as many GPUs.
  void StartWorkerOn(
      uint32_t index, std::vector<std::unique_ptr<Backend>> backends, std::function<void()> abandon = [] {});
  void StartEvaluator(
      uint32_t index, std::unique_ptr<Backend> backend, std::function<void()> abandon = [] {});
  // The end of the job; DeadlineExceeded if it does not end.
  absl::Status AwaitEnd();
  // After AwaitEnd: waits for all tasks; how a worker ended, and the evaluator that was started last.
  absl::Status WorkerStatus(uint32_t index);
  absl::Status EvaluatorStatus();
  v1::JobStatus JobStatus();

 private:
  // Sets what a worker's options and an evaluator's have in common.
  template <typename Options>
  void Prepare(v1::TaskId::Role role, uint32_t index, std::vector<std::unique_ptr<Backend>> backends,
               std::function<void()> abandon, Options* options);
  void JoinThreads();

  const v1::JobConfig config_;
  RealClock clock_;
  Logger log_{"job", &clock_};
  std::unique_ptr<coordinator::JobRunner> runner_;
  std::unique_ptr<coordinator::CoordinatorService> service_;
  coordinator::Listener listener_;
  std::string address_;
  std::vector<absl::Status> worker_status_;
  absl::Status evaluator_status_;
  std::vector<std::thread> threads_;
};

}  // namespace rubato

#endif  // RUBATO_TESTS_INTEGRATION_WHOLE_JOB_H_
