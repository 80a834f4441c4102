#include "bench/gpu/case_report.h"

namespace rubato::bench {

void CaseReport::Add(const BenchCase& bench_case) {
  out_ << CaseJson(bench_case) << std::endl;
  cases_.push_back(bench_case);
}

void CaseReport::Fail(const std::string& name, const absl::Status& status) {
  errors_ << "FAILED: " << name << ": " << status << std::endl;
  ++failed_;
}

int CaseReport::Finish() {
  out_ << CasesTable(cases_) << std::flush;
  if (failed_ > 0) errors_ << failed_ << " failed, " << cases_.size() << " did not" << std::endl;
  return failed_ > 0 ? 1 : 0;
}

}  // namespace rubato::bench
