#ifndef RUBATO_CLI_AUDIT_AUDIT_H_
#define RUBATO_CLI_AUDIT_AUDIT_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/audit/audit_report.h"

namespace rubato {

// Replays all update logs of a run and says which invariants held (audit_report.h). Reads record by record: a log may
// be much larger than memory. A log that ends in the middle of a record, or is missing, is noted in the report.
//
// NotFound: the run wrote no update logs (cluster.update_log was off). DataLoss: a log is corrupt, with its offset;
// nothing can then be said about the run.
absl::StatusOr<AuditReport> AuditRun(const std::string& run_directory);

}  // namespace rubato

#endif  // RUBATO_CLI_AUDIT_AUDIT_H_
