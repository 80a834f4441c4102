#include "cli/command/task_waits.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace rubato {
namespace {

// Shorter waits are what steps consist of.
constexpr double kLongWaitSeconds = 0.5;

// Whom servers say that a worker waits for; without the worker's own word if there are none.
std::string Awaited(const v1::JobStatus& status, const v1::TaskStatus& worker) {
  std::set<std::string> names;
  for (const v1::TaskStatus& task : status.tasks()) {
    for (const v1::HeldPull& held : task.server().held()) {
      if (held.worker() == worker.task().index()) names.insert(held.waiting_for());
    }
  }
  if (!names.empty()) return absl::StrCat("waits for ", absl::StrJoin(names, "; "));
  const std::string& own = worker.progress().waiting_for();
  return own.empty() ? "waits for the servers' answers" : absl::StrCat("in ", own);
}

}  // namespace

bool IsSilent(const v1::JobStatus& status, const v1::TaskStatus& task) {
  // Heartbeats come at least three times per lease.
  return task.state() == v1::TaskStatus::ALIVE && status.lease_seconds() > 0 &&
         task.seconds_since_heard() > status.lease_seconds() / 2;
}

std::string WaitOf(const v1::JobStatus& status, const v1::TaskStatus& task) {
  if (task.state() != v1::TaskStatus::ALIVE) return "";
  if (IsSilent(status, task)) {
    return absl::StrFormat("is silent for %.1f s; it is evicted after %g s", task.seconds_since_heard(),
                           status.lease_seconds());
  }
  const double seconds = task.progress().waiting_seconds();
  if (task.task().role() != v1::TaskId::WORKER || seconds < kLongWaitSeconds) return "";
  return absl::StrFormat("%s, for %.1f s", Awaited(status, task), seconds);
}

}  // namespace rubato
