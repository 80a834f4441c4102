#ifndef RUBATO_TESTS_SECURITY_CERTIFIED_RUN_H_
#define RUBATO_TESTS_SECURITY_CERTIFIED_RUN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/health/health.h"
#include "common/limits/refusal_log.h"
#include "common/log.h"
#include "coordinator/coordinator_service.h"
#include "coordinator/job_runner.h"
#include "proto/coordinator.pb.h"
#include "server/server_task.h"
#include "tests/security/certified_job.h"

namespace rubato {

// A job that trains in this process for as long as the test goes on: a coordinator, a server and two workers, each with
// its certificate, over real sockets. It keeps update logs. One thread.
class CertifiedRun {
 public:
  static constexpr uint64_t kFingerprint = 77;

  // `job` is of the name "hunted", and outlives the run.
  explicit CertifiedRun(const CertifiedJob* job);
  // The job is stopped, if it was not.
  ~CertifiedRun();

  const v1::JobConfig& config() const { return config_; }
  Clock* clock() { return &clock_; }
  // Of all tasks, on the standard error.
  Logger* log() { return &log_; }
  int coordinator_port() const { return listener_.port; }
  int server_port();
  v1::JobStatus Status();

  // Returns when the workers have done so many steps more, with their last step; -1 if they do not.
  int64_t AwaitSteps(int64_t more);
  // Expects that the tasks are those that began, and that nothing went back.
  void ExpectUnharmed(const v1::JobStatus& begun);
  // Stops the job, and expects its audit to hold.
  void StopAndAudit();

 private:
  void StartServer();
  void StartWorker(uint32_t index);

  const CertifiedJob* const job_;
  const v1::JobConfig config_;
  RealClock clock_;
  Logger log_{"job", &clock_};
  RefusalLog refusals_{&clock_, &log_};
  std::unique_ptr<coordinator::JobRunner> runner_;
  std::unique_ptr<coordinator::CoordinatorService> service_;
  std::shared_ptr<const TaskSecurity> security_;
  coordinator::Listener listener_;
  std::string address_;
  std::vector<std::thread> threads_;
};

// How a worker of such a job ends, whose coordinator is somebody else's.
absl::Status RunCertifiedWorker(const CertifiedJob& job, uint32_t index, const std::string& coordinator);

}  // namespace rubato

#endif  // RUBATO_TESTS_SECURITY_CERTIFIED_RUN_H_
