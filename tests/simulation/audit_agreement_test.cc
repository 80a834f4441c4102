// The audit of update logs and the rules were written apart: here the one judges what the other did under faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/audit/log_audit.h"
#include "cli/audit/term_history.h"
#include "tests/simulation/simulation.h"

namespace rubato::simulation {
namespace {

using Logs = std::map<uint32_t, std::vector<v1::UpdateLogRecord>>;  // By partition.

// Of each line of history, in their order.
AuditReport Audit(const std::vector<Logs>& lines) {
  AuditReport report;
  TermHistory terms(&report);
  for (size_t line = 0; line < lines.size(); ++line) {
    terms.Begin(line + 1);
    for (const auto& [partition, records] : lines[line]) {
      const std::string where = absl::StrCat("line ", line, ", partition ", partition);
      LogAudit audit(where, terms.restored(), &report);
      for (const v1::UpdateLogRecord& record : records) {
        if (record.has_plan()) terms.OnPlan(where, record.plan());
        audit.OnRecord(record);
      }
      audit.Finish(false);
      terms.OnLog(where, audit, false);
    }
    terms.End();
  }
  return report;
}

TEST(AuditAgreementTest, TheAuditFindsThatSimulatedRunsHeldTheirInvariants) {
  size_t most_lines = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::map<uint64_t, size_t> numbers;  // By job.
    std::vector<Logs> lines;
    RunOptions options;
    options.seed = seed;
    options.on_record = [&](uint64_t job, uint32_t partition, const v1::UpdateLogRecord& record) {
      auto [line, first_seen] = numbers.emplace(job, lines.size());
      if (first_seen) lines.emplace_back();
      lines[line->second][partition].push_back(record);
    };
    const RunResult result = RunOnce(options);
    const AuditReport report = Audit(lines);
    EXPECT_TRUE(report.held()) << result.scenario << "\n" << FormatAudit(report) << "replay with --seed=" << seed;
    most_lines = std::max(most_lines, lines.size());
  }
  EXPECT_GE(most_lines, 3u);
}

}  // namespace
}  // namespace rubato::simulation
