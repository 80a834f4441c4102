#include "cli/doctor/finding.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rubato {
namespace {

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kProblem:
      return "PROBLEM";
  }
  return "";
}

int64_t CountOf(const std::vector<Finding>& findings, Verdict verdict) {
  return std::count_if(findings.begin(), findings.end(),
                       [verdict](const Finding& finding) { return finding.verdict == verdict; });
}

}  // namespace

std::string FormatFindings(const std::vector<Finding>& findings) {
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.subject.size());
  std::string text;
  for (const Finding& finding : findings) {
    absl::StrAppendFormat(&text, "%-7s  %-*s  %s\n", VerdictName(finding.verdict), static_cast<int>(width),
                          finding.subject, finding.text);
    if (!finding.next_step.empty()) {
      absl::StrAppendFormat(&text, "%-7s  %-*s  -> %s\n", "", static_cast<int>(width), "", finding.next_step);
    }
  }
  absl::StrAppendFormat(&text, "%d ok, %d warnings, %d problems\n", CountOf(findings, Verdict::kOk),
                        CountOf(findings, Verdict::kWarning), CountOf(findings, Verdict::kProblem));
  return text;
}

bool HasProblem(const std::vector<Finding>& findings) { return CountOf(findings, Verdict::kProblem) > 0; }

}  // namespace rubato
