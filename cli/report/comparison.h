#ifndef RUBATO_CLI_REPORT_COMPARISON_H_
#define RUBATO_CLI_REPORT_COMPARISON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/report/run_record.h"
#include "cli/report/run_summary.h"
#include "cli/report/target.h"
#include "cli/report/tuning.h"

namespace rubato {

// What the replay of a run's update log found.
enum class AuditResult { kNotLogged, kHeld, kBroken };

// "not logged", "held", "broken".
absl::string_view AuditResultName(AuditResult result);

struct ComparedRun {
  uint64_t seed = 0;
  // Relative to the comparison's directory.
  std::string directory;
  RunRecord record;
  RunSummary summary;
  AuditResult audit = AuditResult::kNotLogged;
};

struct ComparedMode {
  // As asked for: "sync", "ssp:2", "async".
  std::string name;
  std::vector<ComparedRun> runs;
};

// Runs of one job under several modes; what all the reports are made from. Pure data.
struct Comparison {
  std::string job;
  Target target;
  // The examples were drawn from a generator instead of being read from files.
  bool generated_data = false;
  // The job's config in text format, for the reader of the report.
  std::string config_text;
  // The runs were made before anybody said that they would be compared.
  bool chosen_afterwards = false;
  // Workers that were slowed down on purpose, as text; empty when none was.
  std::string slowed;
  std::vector<ComparedMode> modes;
  // What was tried before; empty when nothing was.
  std::vector<Tuning> tunings;
  // Name of the mode that the others are compared with; empty: the first one.
  std::string baseline;
};

RunSummary MeanOfMode(const ComparedMode& mode);

// The worst of the mode's runs.
AuditResult AuditOfMode(const ComparedMode& mode);

// What the mode's workers skipped, by reason; empty when that is nothing.
std::vector<std::string> SkippedSteps(const ComparedMode& mode);

// "went back to step 150 (server 1 was lost)", for each time that one of the mode's runs did.
std::vector<std::string> Rollbacks(const ComparedMode& mode);

// Whether every run reached the target at some evaluation; true when there is no target.
bool AllReachedTarget(const Comparison& comparison);

// The first run's first line; null if no run has one.
const v1::StartLine* FirstStart(const Comparison& comparison);

// Whether the job's loss is MEAN_SQUARED_ERROR: evaluations have R2 and RMSE instead of an accuracy.
bool IsRegression(const Comparison& comparison);

// What was measured on held-out examples, at least one: first that of the target or, if there is none, the first in
// kMetrics.
std::vector<Metric> MetricsOf(const Comparison& comparison);

// Whether anything was evaluated; otherwise the numbers of training take the place of held-out ones.
bool HasEvaluations(const Comparison& comparison);

// Whether it is known how many examples were trained; otherwise steps take their place.
bool HasExamples(const Comparison& comparison);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_COMPARISON_H_
