#ifndef RUBATO_CLI_AUDIT_TERM_HISTORY_H_
#define RUBATO_CLI_AUDIT_TERM_HISTORY_H_

#include <cstdint>
#include <map>
#include <string>

#include "cli/audit/audit_report.h"
#include "cli/audit/log_audit.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// How far a job had come in each of its terms, and whether a term begins with something that the terms before it had.
// Terms come in ascending order, and within one its logs. Pure.
class TermHistory {
 public:
  explicit TermHistory(AuditReport* report) : report_(report) {}

  // The logs that follow are of this term.
  void Begin(uint64_t term);
  // Whether a term came before this one: chunks are of a checkpoint.
  bool restored() const { return terms_ > 1; }

  // A plan record of the log that `where` names. Breaks I5 if it is no newer than those of terms before.
  void OnPlan(const std::string& where, const v1::Plan& plan);
  // A log has been read. Breaks I3 if a chunk begins with a version that it never had. `torn`: it may have gone on.
  void OnLog(const std::string& where, const LogAudit& log, bool torn);
  // All logs of the term have been read. Breaks I5 if it began with a step that nobody had reached.
  void End();

 private:
  // The end of the terms so far.
  struct Reached {
    uint64_t generation = 0;
    // One that had been begun, or was about to be.
    int64_t step = 0;
    std::map<uint32_t, int64_t> versions;  // By chunk.
    bool torn = false;
  };

  AuditReport* const report_;
  int terms_ = 0;
  uint64_t term_ = 0;
  bool has_plan_ = false;
  Reached before_;  // This term.
  Reached now_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_AUDIT_TERM_HISTORY_H_
