#ifndef RUBATO_CLI_REPORT_TERMINAL_REPORT_H_
#define RUBATO_CLI_REPORT_TERMINAL_REPORT_H_

#include <string>

#include "cli/report/comparison.h"

namespace rubato {

// One row for each mode, the means over its runs.
std::string FormatTable(const Comparison& comparison);

// Held-out accuracy (training loss if there was no evaluation) over seconds, the first run of each mode.
std::string FormatCurves(const Comparison& comparison, bool color);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_TERMINAL_REPORT_H_
