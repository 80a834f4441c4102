#ifndef RUBATO_CLI_AUDIT_LOG_BUILDER_H_
#define RUBATO_CLI_AUDIT_LOG_BUILDER_H_

#include <cstdint>
#include <vector>

#include "cli/audit/audit_report.h"
#include "proto/update_log.pb.h"

namespace rubato {

// Writes update logs by hand, for tests. Worker w has incarnation 100 + w.
//
//   LogBuilder log;
//   log.Plan({.mode = v1::SSP, .bound = 2, .members = {0, 1}});
//   log.Push({.worker = 0, .step = 0, .base = 0, .applied = 1});
//   AuditReport report = log.Audit();
class LogBuilder {
 public:
  struct PlanOptions {
    uint64_t generation = 1;
    uint64_t amendment = 0;
    v1::Mode mode = v1::SYNC;
    int64_t bound = 0;
    uint32_t quorum = 0;
    std::vector<uint32_t> members = {0, 1};
    int64_t first_step = 0;
  };
  struct PushOptions {
    uint32_t worker = 0;
    int64_t step = 0;
    int64_t base = 0;
    int64_t applied = 0;
    uint64_t generation = 1;
    uint32_t chunk = 0;
    bool ineffective = false;
    // 0: the worker's own.
    uint64_t incarnation = 0;
    // 0: the step took no batch. Otherwise examples [10 * batch, 10 * batch + 10) of the shard.
    uint64_t shard = 0;
    int64_t batch = 0;
  };

  LogBuilder& Plan(const PlanOptions& options);
  LogBuilder& Push(const PushOptions& options);
  // One SYNC update: the contributions of `workers` to `step`, computed from version applied - 1.
  LogBuilder& Sync(int64_t step, int64_t applied, const std::vector<uint32_t>& workers, uint64_t generation = 1);

  const std::vector<v1::UpdateLogRecord>& records() const { return records_; }

  // What LogAudit makes of the records.
  AuditReport Audit(bool torn = false, bool restored = false) const;

 private:
  std::vector<v1::UpdateLogRecord> records_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_AUDIT_LOG_BUILDER_H_
