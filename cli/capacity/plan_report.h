#ifndef RUBATO_CLI_CAPACITY_PLAN_REPORT_H_
#define RUBATO_CLI_CAPACITY_PLAN_REPORT_H_

#include <string>

#include "cli/capacity/capacity_plan.h"

namespace rubato::capacity {

// Tables and sentences for a terminal.
std::string FormatPlan(const CapacityPlan& plan);

// A JSON object (docs/capacity.md), times in seconds, loads as shares of 1, with a newline at its end.
std::string PlanToJson(const CapacityPlan& plan);

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_PLAN_REPORT_H_
