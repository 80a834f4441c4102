#include "coordinator/rules/shard_keeper.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/task.h"

namespace rubato::coordinator {
namespace {

template <typename Tasks>
bool Contains(const Tasks& tasks, const v1::TaskId& task) {
  return std::any_of(tasks.begin(), tasks.end(), [&](const v1::TaskId& other) { return SameTask(other, task); });
}

}  // namespace

void ShardKeeper::OnRequest(const v1::TaskId& worker, const v1::ShardRequest& request) {
  if (!job_->dispatcher) return;
  ShardDispatcher::Answer answer = job_->dispatcher->Request(worker, request);
  v1::JournalRecord record;
  if (!answer.finished.empty()) {
    record.mutable_finished_shards()->mutable_shards()->Add(answer.finished.begin(), answer.finished.end());
    out_->Journal(record, false);
  }
  if (answer.leased) {
    *record.mutable_lease()->mutable_worker() = worker;
    *record.mutable_lease()->mutable_grant() = *answer.grant;
    out_->Journal(record, false);
  }
  if (!answer.grant) return;
  v1::Directive directive;
  *directive.mutable_shard_grant() = *answer.grant;
  out_->Send(worker, std::move(directive));
}

void ShardKeeper::OnPlanAck(const v1::PlanAck& ack) {
  if (!job_->dispatcher) return;
  for (const v1::LostWorker& lost : ack.lost()) {
    if (!Contains(job_->dispatcher->gone(), lost.task())) continue;
    v1::LostWorker& reached = job_->reached[lost.task().incarnation()];
    if (reached.has_task() && lost.step() <= reached.step()) continue;
    reached = lost;
    v1::JournalRecord record;
    *record.mutable_lost_worker() = lost;
    out_->Journal(std::move(record), false);
  }
}

bool ShardKeeper::IsKnown(const v1::TaskId& worker) const {
  const PlanMaker& plans = *job_->plan_maker;
  if (!plans.has_plan()) return true;
  if (Contains(plans.plan().members(), worker)) return false;
  return plans.HeldByAllServers() || RUBATO_MUTANT(kReturnsBeforeServersKnow);
}

void ShardKeeper::ReturnWhenKnown(absl::Time now) {
  if (job_->replaced || job_->phase != v1::JobStatus::TRAINING || !job_->dispatcher) return;
  // Not while a member may still say of the cut where it is.
  if (cuts_->AwaitsPositions()) return;
  const std::vector<v1::TaskId> gone = job_->dispatcher->gone();
  for (const v1::TaskId& worker : gone) {
    if (IsKnown(worker)) Return(worker, now);
  }
}

void ShardKeeper::Return(const v1::TaskId& worker, absl::Time now) {
  v1::JournalRecord record;
  v1::JournalReturnedShards& returned = *record.mutable_returned_shards();
  *returned.mutable_worker() = worker;
  std::optional<v1::ShardPosition> trained;
  if (auto node = job_->reached.extract(worker.incarnation()); !node.empty()) {
    const v1::LostWorker& reached = node.mapped();
    trained = reached.trained();
    *returned.mutable_trained() = reached.trained();
    if (cuts_->LacksPositionOf(worker, reached.step())) cuts_->BeginAgain(TaskName(worker), now);
  }
  out_->Journal(std::move(record), false);
  absl::Status status = job_->dispatcher->Return(worker, trained);
  if (!status.ok()) out_->Log('W', absl::StrCat(status.message(), "; the shard is trained again as a whole"));
}

}  // namespace rubato::coordinator
