#ifndef RUBATO_CLI_REPORT_QUANTITIES_H_
#define RUBATO_CLI_REPORT_QUANTITIES_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/report/comparison.h"
#include "cli/report/to_target.h"

namespace rubato {

// A number of a run by which modes are compared.
struct Quantity {
  // As in summary.json: "final_accuracy".
  std::string name;
  // For people: "accuracy".
  std::string label;
  // A mode's number divided by the baseline's is compared with 1, instead of its difference with 0.
  bool is_ratio = false;
  // Of a run; absent if it has no such number. Null if the quantity is an effort.
  std::optional<double> (*value)(const RunSummary& run) = nullptr;
  // What the target takes, where runs may be censored.
  Effort effort = Effort::kSeconds;
};

// Those that the comparison's runs have: how good the model is in the end, how fast they train, and what the target
// takes. How good it is, is told by the first of these that there is: one of MetricsOf, loss; held out, or else of
// training.
std::vector<Quantity> QuantitiesOf(const Comparison& comparison);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_QUANTITIES_H_
