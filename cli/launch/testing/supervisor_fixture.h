#ifndef RUBATO_CLI_LAUNCH_TESTING_SUPERVISOR_FIXTURE_H_
#define RUBATO_CLI_LAUNCH_TESTING_SUPERVISOR_FIXTURE_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/launch/job_supervisor.h"
#include "cli/launch/testing/fake_task_host.h"

namespace rubato {

inline constexpr ExitResult kDone = {.code = 0};
inline constexpr ExitResult kFailed = {.code = 1};
inline constexpr ExitResult kRefused = {.code = 2};
inline constexpr ExitResult kKilled = {.signal = SIGKILL};

// A supervisor of a job of two servers and two workers, whose tasks do what the test says.
class JobSupervisorTest : public ::testing::Test {
 protected:
  JobSupervisorTest() : host_(&clock_, 2, 2), signals_(*StopSignals::Create()) {
    options_.contact_timeout = absl::Seconds(30);
    options_.on_event = [this](absl::string_view text) { events_.emplace_back(text); };
    options_.on_status = [this](const v1::JobStatus&) { ++polls_; };
    host_.on_stop = [this] { host_.EndAll(kFailed); };
  }

  absl::Status Run(const absl::Status& started = absl::OkStatus(),
                   const std::optional<std::string>& recorded_error = std::nullopt) {
    JobSupervisor supervisor(options_, &host_, &clock_, signals_.get());
    supervisor.Run(started);
    return supervisor.Result(recorded_error);
  }

  void JobFails(const std::string& error) {
    host_.status.set_phase(v1::JobStatus::FAILED);
    host_.status.set_error(error);
  }

  // What the coordinator says of a task; again and again of the same one.
  void Says(v1::TaskId::Role role, uint32_t index, uint64_t incarnation, v1::TaskStatus::State state,
            const std::string& reason = "") {
    v1::TaskStatus* status = nullptr;
    for (v1::TaskStatus& task : *host_.status.mutable_tasks()) {
      if (task.task().role() == role && task.task().index() == index) status = &task;
    }
    if (status == nullptr) status = host_.status.add_tasks();
    status->mutable_task()->set_role(role);
    status->mutable_task()->set_index(index);
    status->mutable_task()->set_incarnation(incarnation);
    status->set_state(state);
    status->set_reason(reason);
  }

  void KillEverySecond(v1::TaskId::Role role, uint32_t index, int seconds) {
    for (int i = 1; i <= seconds; ++i) {
      host_.At(absl::Seconds(i), [this, role, index] { host_.End(role, index, kKilled); });
    }
  }

  void InterruptAt(absl::Duration time) {
    host_.At(time, [] { kill(getpid(), SIGINT); });
  }

  FakeClock clock_;
  FakeTaskHost host_;
  std::unique_ptr<StopSignals> signals_;
  JobSupervisor::Options options_;
  std::vector<std::string> events_;
  int polls_ = 0;
};

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_TESTING_SUPERVISOR_FIXTURE_H_
