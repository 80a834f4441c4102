#ifndef RUBATO_CLI_REPORT_STATISTICS_HOLM_H_
#define RUBATO_CLI_REPORT_STATISTICS_HOLM_H_

#include <vector>

namespace rubato {

// Several tests' p, each adjusted so that the chance of even one that is wrongly under a threshold is at most that
// threshold (Holm 1979, "A simple sequentially rejective multiple test procedure"): the smallest of m times m, the next
// times m - 1, and so on, none under the one before or over 1. In the order of the argument.
std::vector<double> HolmAdjusted(const std::vector<double>& p);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_STATISTICS_HOLM_H_
