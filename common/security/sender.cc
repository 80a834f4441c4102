#include "common/security/sender.h"

#include "absl/strings/str_cat.h"
#include "common/proto_enum.h"
#include "common/task.h"

namespace rubato {

Party PartyOf(v1::TaskId::Role role) {
  switch (role) {
    case v1::TaskId::COORDINATOR:
      return Party::kCoordinator;
    case v1::TaskId::SERVER:
      return Party::kServer;
    case v1::TaskId::WORKER:
      return Party::kWorker;
    case v1::TaskId::EVALUATOR:
      return Party::kEvaluator;
    case v1::TaskId::ROLE_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::TaskId_Role_TaskId_Role) : break;
  }
  // No task is one.
  return Party::kOperator;
}

absl::Status CheckSender(const std::optional<Identity>& identity, v1::TaskId::Role role, uint32_t index) {
  if (!identity.has_value()) return absl::OkStatus();
  const bool is_task = identity->party != Party::kOperator;
  if (is_task && identity->party == PartyOf(role) && identity->index == index) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("the message says that it is of ", TaskName(role, index),
                                                  ", and came with the certificate of ",
                                                  PartyText(identity->party, identity->index)));
}

absl::Status CheckSender(const std::optional<Identity>& identity, const v1::TaskId& task) {
  return CheckSender(identity, task.role(), task.index());
}

}  // namespace rubato
