#ifndef RUBATO_CLI_REPORT_BASELINE_TABLE_H_
#define RUBATO_CLI_REPORT_BASELINE_TABLE_H_

#include <string>

#include "cli/report/comparison.h"

namespace rubato {

// For a terminal: each mode against the baseline in each quantity, over pairs of runs with the same seed, and what has
// to be said with it. Empty if there is but one mode. Ends with an empty line.
std::string FormatBaselineTable(const Comparison& comparison);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_BASELINE_TABLE_H_
