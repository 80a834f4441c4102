#include "common/session/task_session.h"

#include "common/config/fingerprint.h"
#include "common/task.h"

namespace rubato {

Session::Options TaskSessionOptions(const v1::JobConfig& config, const std::string& coordinator, const v1::TaskId& task,
                                    const Clock* clock, Logger* log) {
  Session::Options options;
  options.coordinator = coordinator;
  options.task = task;
  options.registration = DescribeProcess();
  options.registration.set_config_fingerprint(ConfigFingerprint(config));
  options.give_up_after = absl::Seconds(config.cluster().start_timeout_seconds());
  options.clock = clock;
  options.log = log;
  return options;
}

}  // namespace rubato
