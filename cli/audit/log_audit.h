#ifndef RUBATO_CLI_AUDIT_LOG_AUDIT_H_
#define RUBATO_CLI_AUDIT_LOG_AUDIT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cli/audit/audit_report.h"
#include "cli/audit/chunk_audit.h"
#include "cli/audit/plan_history.h"
#include "proto/update_log.pb.h"

namespace rubato {

// Replays one partition's update log, record by record, and enters what it finds into a report. Pure; not thread-safe.
//
//   LogAudit audit("server 0, partition 0", /*restored=*/false, &report);
//   while (...) audit.OnRecord(record);
//   audit.Finish(reader.torn());
class LogAudit {
 public:
  // `where` names the log in counterexamples. `restored`: the log begins with chunks of a checkpoint, whose versions
  // are not 0 but what the first pushes tell. `report` outlives the object.
  LogAudit(std::string where, bool restored, AuditReport* report)
      : where_(where), restored_(restored), report_(report), plans_(where, report) {}

  // A plan or an update.
  void OnRecord(const v1::UpdateLogRecord& record);
  // `torn`: the log ends in the middle of a record; then its last SYNC update may be incomplete.
  void Finish(bool torn);

  // The chunks that were updated.
  std::vector<uint32_t> chunks() const;
  // One of these.
  const ChunkAudit& chunk(uint32_t index) const { return *chunks_.at(index); }
  // Of all pushes; -1 for none.
  int64_t highest_step() const { return highest_step_; }

 private:
  void OnPlan(const v1::Plan& plan);
  void OnPush(const v1::UpdateRecord& push);

  const std::string where_;
  const bool restored_;
  AuditReport* const report_;
  PlanHistory plans_;
  absl::flat_hash_map<uint32_t, std::unique_ptr<ChunkAudit>> chunks_;
  int64_t highest_step_ = -1;
  ChunkAudit* last_ = nullptr;
};

}  // namespace rubato

#endif  // RUBATO_CLI_AUDIT_LOG_AUDIT_H_
