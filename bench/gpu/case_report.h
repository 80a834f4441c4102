#ifndef RUBATO_BENCH_GPU_CASE_REPORT_H_
#define RUBATO_BENCH_GPU_CASE_REPORT_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/bench_output.h"

namespace rubato::bench {

// Shows each case as soon as it has been measured, so that a program that is broken off has shown what it has:
//
//   CaseReport report(&std::cout, &std::cerr);
//   report.Add({"copy", {{"seconds", seconds}}});
//   report.Fail("product", status);
//   return report.Finish();
class CaseReport {
 public:
  // Both outlive the report.
  CaseReport(std::ostream* out, std::ostream* errors) : out_(*out), errors_(*errors) {}

  // One line of JSON, flushed.
  void Add(const BenchCase& bench_case);
  // One line among the errors.
  void Fail(const std::string& name, const absl::Status& status);
  // The table of all that succeeded, and how many failed. The program's exit status: 1 if any has.
  int Finish();

 private:
  std::ostream& out_;
  std::ostream& errors_;
  std::vector<BenchCase> cases_;
  int failed_ = 0;
};

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_GPU_CASE_REPORT_H_
