#include "common/task_log.h"

#include "common/task.h"

namespace rubato {

Logger MakeTaskLogger(const v1::TaskId& task, const v1::JobConfig& config, const Clock* clock) {
  const bool json = config.observability().log_format() == v1::ObservabilityConfig::JSON;
  return Logger(TaskName(task), clock,
                {.format = json ? LogFormat::kJson : LogFormat::kText, .incarnation = task.incarnation()});
}

}  // namespace rubato
