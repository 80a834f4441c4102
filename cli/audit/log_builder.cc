#include "cli/audit/log_builder.h"

#include "cli/audit/log_audit.h"

namespace rubato {

LogBuilder& LogBuilder::Plan(const PlanOptions& options) {
  v1::Plan& plan = *records_.emplace_back().mutable_plan();
  plan.set_generation(options.generation);
  plan.set_amendment(options.amendment);
  plan.set_mode(options.mode);
  plan.set_staleness_bound(options.bound);
  plan.set_quorum(options.quorum);
  plan.set_first_step(options.first_step);
  for (uint32_t worker : options.members) {
    v1::TaskId& task = *plan.add_members();
    task.set_role(v1::TaskId::WORKER);
    task.set_index(worker);
    task.set_incarnation(100 + worker);
  }
  return *this;
}

LogBuilder& LogBuilder::Push(const PushOptions& options) {
  v1::UpdateRecord& push = *records_.emplace_back().mutable_update();
  push.set_worker(options.worker);
  push.set_incarnation(options.incarnation == 0 ? 100 + options.worker : options.incarnation);
  push.set_generation(options.generation);
  push.set_step(options.step);
  push.set_chunk(options.chunk);
  push.set_base_version(options.base);
  push.set_applied_version(options.applied);
  push.set_examples(options.ineffective ? 0 : 64);
  push.set_ineffective(options.ineffective);
  if (options.shard == 0) return *this;
  push.mutable_slice()->set_shard(options.shard);
  push.mutable_slice()->set_begin(10 * options.batch);
  push.mutable_slice()->set_end(10 * options.batch + 10);
  return *this;
}

LogBuilder& LogBuilder::Sync(int64_t step, int64_t applied, const std::vector<uint32_t>& workers, uint64_t generation) {
  for (uint32_t worker : workers) {
    Push({.worker = worker, .step = step, .base = applied - 1, .applied = applied, .generation = generation});
  }
  return *this;
}

AuditReport LogBuilder::Audit(bool torn, bool restored) const {
  AuditReport report;
  LogAudit audit("server 0, partition 0", restored, &report);
  for (const v1::UpdateLogRecord& record : records_) audit.OnRecord(record);
  audit.Finish(torn);
  return report;
}

}  // namespace rubato
