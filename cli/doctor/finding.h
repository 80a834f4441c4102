#ifndef RUBATO_CLI_DOCTOR_FINDING_H_
#define RUBATO_CLI_DOCTOR_FINDING_H_

#include <string>
#include <vector>

namespace rubato {

enum class Verdict { kOk, kWarning, kProblem };

// What the doctor has found out about one thing.
struct Finding {
  Verdict verdict = Verdict::kOk;
  // "disk", "clock", ...
  std::string subject;
  // What is there.
  std::string text;
  // What to do; empty if all is well.
  std::string next_step;
};

// A line each, and a second one with the next step if there is something to do; at the end how many there are of
// each verdict.
std::string FormatFindings(const std::vector<Finding>& findings);

bool HasProblem(const std::vector<Finding>& findings);

}  // namespace rubato

#endif  // RUBATO_CLI_DOCTOR_FINDING_H_
