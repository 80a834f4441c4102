#ifndef RUBATO_CLI_REPORT_WORK_DONE_H_
#define RUBATO_CLI_REPORT_WORK_DONE_H_

#include <optional>

#include "cli/report/run_record.h"

namespace rubato {

// What a job had done at some point of its run. Absent: the record does not say.
struct WorkDone {
  // Training examples.
  std::optional<double> samples;
  // Of the weights: in SYNC one a step, in SSP and ASYNC one a worker's step.
  std::optional<double> updates;
};

// Where the weights of an evaluation were: its epochs in examples, and the updates that there had been by then, between
// two progress lines in proportion to their epochs.
WorkDone WorkAt(const RunRecord& record, const v1::EvaluationLine& evaluation);

// At the end of the record.
WorkDone WorkAtEnd(const RunRecord& record);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_WORK_DONE_H_
