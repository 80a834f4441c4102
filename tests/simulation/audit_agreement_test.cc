// The audit of update logs and the rules were written apart: here the one judges what the other did under faults.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/audit/log_audit.h"
#include "tests/simulation/simulation.h"

namespace rubato::simulation {
namespace {

TEST(AuditAgreementTest, TheAuditFindsThatSimulatedRunsHeldTheirInvariants) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    AuditReport report;
    std::map<std::pair<uint64_t, uint32_t>, std::unique_ptr<LogAudit>> audits;
    // The others went back to a checkpoint.
    std::optional<uint64_t> first_job;
    RunOptions options;
    options.seed = seed;
    options.on_record = [&](uint64_t job, uint32_t partition, const v1::UpdateLogRecord& record) {
      std::unique_ptr<LogAudit>& audit = audits[{job, partition}];
      if (!first_job) first_job = job;
      if (audit == nullptr) {
        audit = std::make_unique<LogAudit>(absl::StrCat("partition ", partition), job != *first_job, &report);
      }
      audit->OnRecord(record);
    };
    const RunResult result = RunOnce(options);
    for (auto& [where, audit] : audits) audit->Finish(false);
    EXPECT_TRUE(report.held()) << result.scenario << "\n" << FormatAudit(report) << "replay with --seed=" << seed;
  }
}

}  // namespace
}  // namespace rubato::simulation
