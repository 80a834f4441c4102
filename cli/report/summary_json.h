#ifndef RUBATO_CLI_REPORT_SUMMARY_JSON_H_
#define RUBATO_CLI_REPORT_SUMMARY_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/report/comparison.h"

namespace rubato {

// What summary.json holds (docs/formats.md).
nlohmann::ordered_json SummaryOf(const Comparison& comparison);

// summary.json, with a newline at the end.
std::string SummaryJson(const Comparison& comparison);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_SUMMARY_JSON_H_
