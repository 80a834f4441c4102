#include "common/task.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/proto_enum.h"

namespace rubato {

std::string TaskName(v1::TaskId::Role role, uint32_t index) {
  switch (role) {
    case v1::TaskId::COORDINATOR:
      return "coordinator";
    case v1::TaskId::SERVER:
      return absl::StrCat("server ", index);
    case v1::TaskId::WORKER:
      return absl::StrCat("worker ", index);
    case v1::TaskId::EVALUATOR:
      return absl::StrCat("evaluator ", index);
    case v1::TaskId::ROLE_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::TaskId_Role_TaskId_Role) : break;
  }
  return absl::StrCat("task of unknown role ", static_cast<int>(role), " ", index);
}

std::string TaskName(const v1::TaskId& task) { return TaskName(task.role(), task.index()); }

bool SameTask(const v1::TaskId& a, const v1::TaskId& b) {
  return a.role() == b.role() && a.index() == b.index() && a.incarnation() == b.incarnation();
}

double LearningRateScale(const v1::Plan& plan) {
  return plan.learning_rate_scale() > 0 ? plan.learning_rate_scale() : 1;
}

std::optional<double> MomentumOf(const v1::Plan& plan) {
  return plan.has_momentum() ? std::optional(plan.momentum()) : std::nullopt;
}

std::string ModeName(v1::Mode mode, int64_t staleness_bound) {
  switch (mode) {
    case v1::SYNC:
      return "SYNC";
    case v1::SSP:
      return absl::StrCat("SSP(", staleness_bound, ")");
    case v1::ASYNC:
      return "ASYNC";
    case v1::MODE_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::Mode) : break;
  }
  return absl::StrCat("unknown mode ", static_cast<int>(mode));
}

v1::Register DescribeProcess() {
  v1::Register description;
  description.set_protocol_version(kProtocolVersion);
  char host[256] = "";
  if (gethostname(host, sizeof(host) - 1) == 0) description.set_host_name(host);
  description.set_process_id(getpid());
  return description;
}

}  // namespace rubato
