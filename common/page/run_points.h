#ifndef RUBATO_COMMON_PAGE_RUN_POINTS_H_
#define RUBATO_COMMON_PAGE_RUN_POINTS_H_

#include <nlohmann/json.hpp>

#include "proto/run_record.pb.h"

namespace rubato {

// Lines of a run record as the arrays that the charts of report and page are drawn from. What is not known is null.

// Seconds, epochs, steps, loss, examples per second, accuracy, and the mean staleness of the pushes that `before`, an
// earlier line, does not count.
nlohmann::ordered_json ProgressPoint(const v1::ProgressLine& before, const v1::ProgressLine& line);

// Seconds, epochs, steps, loss, accuracy or R2, AUC, the RMSE of a regression, and the recall at k.
nlohmann::ordered_json EvaluationPoint(const v1::EvaluationLine& line);

}  // namespace rubato

#endif  // RUBATO_COMMON_PAGE_RUN_POINTS_H_
