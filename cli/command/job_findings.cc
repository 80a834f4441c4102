#include "cli/command/job_findings.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/command/status_text.h"
#include "cli/command/task_waits.h"
#include "common/proto_enum.h"
#include "common/task.h"

namespace rubato {
namespace {

Finding JudgePhase(const v1::JobStatus& status) {
  Finding finding = {
      Verdict::kOk, "job",
      absl::StrFormat("%s, %s, step %d, %.0f examples/s", status.job_name(), v1::JobStatus::Phase_Name(status.phase()),
                      status.step(), status.examples_per_second()),
      ""};
  if (status.phase() == v1::JobStatus::FAILED) {
    finding.verdict = Verdict::kProblem;
    absl::StrAppend(&finding.text, ": ", status.error());
    finding.next_step = "mend that, and start the job again";
  } else if (!status.waiting_for().empty()) {
    finding.verdict = Verdict::kWarning;
    absl::StrAppend(&finding.text, "; waits for ", status.waiting_for());
    finding.next_step = "the tasks below say why";
  }
  return finding;
}

// Where to look for a task: "process 71 of node3".
std::string Place(const v1::TaskStatus& task) {
  if (task.process_id() == 0) return "it";
  return absl::StrCat("process ", task.process_id(), " of ", task.host_name());
}

Finding JudgeTask(const v1::JobStatus& status, const v1::TaskStatus& task) {
  Finding finding = {Verdict::kOk, TaskName(task.task()), TaskStateName(task.state()), ""};
  switch (task.state()) {
    case v1::TaskStatus::MISSING:
      finding.verdict = Verdict::kProblem;
      finding.text = "has not registered";
      finding.next_step = "start it, or look into its log for why it cannot reach the coordinator";
      return finding;
    case v1::TaskStatus::EVICTED:
      finding.verdict = Verdict::kProblem;
      absl::StrAppend(&finding.text, ": ", task.reason());
      finding.next_step = absl::StrCat("look into the log of ", Place(task), "; a new one may take its place");
      return finding;
    case v1::TaskStatus::ALIVE:
      break;
    case v1::TaskStatus::LEFT:
    case v1::TaskStatus::STATE_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::TaskStatus_State_TaskStatus_State) : return finding;
  }
  const std::string wait = WaitOf(status, task);
  if (IsSilent(status, task)) {
    finding.verdict = Verdict::kProblem;
    finding.text = wait;
    finding.next_step =
        absl::StrCat("see whether ", Place(task), " is stopped or starved, and whether its host answers");
  } else if (!wait.empty()) {
    finding.verdict = Verdict::kWarning;
    finding.text = wait;
    finding.next_step = "look at what it waits for";
  } else {
    absl::StrAppendFormat(&finding.text, ", heard %.1f s ago", task.seconds_since_heard());
    if (task.task().role() == v1::TaskId::WORKER) absl::StrAppend(&finding.text, ", step ", task.progress().step());
  }
  return finding;
}

}  // namespace

std::vector<Finding> JudgeJob(const v1::JobStatus& status) {
  std::vector<Finding> findings = {JudgePhase(status)};
  for (const v1::TaskStatus& task : status.tasks()) findings.push_back(JudgeTask(status, task));
  return findings;
}

}  // namespace rubato
