#ifndef RUBATO_CLI_AUDIT_AUDIT_H_
#define RUBATO_CLI_AUDIT_AUDIT_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/audit/audit_report.h"

namespace rubato {

// Replays all update logs of a run and says which invariants held (audit_report.h). Each term in which the job began,
// or went back to a checkpoint, is held to them on its own, and to what the terms before it reached: it begins with a
// step and with versions that they got to, and its plans are new. Reads record by record: a log may be much larger than
// memory. A log that ends in the middle of a record, or is missing, is noted in the report; what came before a term is
// then not known well enough for its beginning to be judged.
//
// NotFound: the run wrote no update logs (cluster.update_log was off). DataLoss: a log is corrupt, with its offset;
// nothing can then be said about the run.
absl::StatusOr<AuditReport> AuditRun(const std::string& run_directory);

}  // namespace rubato

#endif  // RUBATO_CLI_AUDIT_AUDIT_H_
