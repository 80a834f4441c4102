#ifndef RUBATO_CLI_AUDIT_PLAN_AGREEMENT_H_
#define RUBATO_CLI_AUDIT_PLAN_AGREEMENT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "cli/audit/audit_report.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// Whether all partitions of a run were told the same plans. Pure.
class PlanAgreement {
 public:
  explicit PlanAgreement(AuditReport* report) : report_(report) {}

  // A plan record of the log that `where` names. Breaks I5 if another log has the same generation with other rules,
  // or the same amendment with other members.
  void OnPlan(const std::string& where, const v1::Plan& plan);

  int64_t plans() const { return static_cast<int64_t>(rules_.size()); }

 private:
  struct Said {
    std::string text;
    std::string where;
  };

  void Compare(const Said& first, const Said& other, uint64_t generation);

  AuditReport* const report_;
  std::map<uint64_t, Said> rules_;                         // By generation.
  std::map<std::pair<uint64_t, uint64_t>, Said> members_;  // By generation and amendment.
};

}  // namespace rubato

#endif  // RUBATO_CLI_AUDIT_PLAN_AGREEMENT_H_
