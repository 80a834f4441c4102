#include "cli/report/quantities.h"

#include <algorithm>

namespace rubato {
namespace {

std::vector<Quantity> Scores() {
  return {
      {"final_accuracy", "accuracy", false, [](const RunSummary& run) { return run.final_accuracy; }},
      {"final_r2", "R2", false, [](const RunSummary& run) { return run.final_r2; }},
      {"final_loss", "loss", false, [](const RunSummary& run) { return run.final_loss; }},
      {"training_accuracy", "training accuracy", false, [](const RunSummary& run) { return run.training_accuracy; }},
      {"training_loss", "training loss", false, [](const RunSummary& run) { return run.training_loss; }},
  };
}

std::optional<double> PositiveOrAbsent(double value) { return value > 0 ? std::optional<double>(value) : std::nullopt; }

std::vector<Quantity> Speeds() {
  return {
      {"examples_per_second", "examples/s", true,
       [](const RunSummary& run) { return PositiveOrAbsent(run.examples_per_second); }},
      {"steps_per_second", "steps/s", true,
       [](const RunSummary& run) { return PositiveOrAbsent(run.steps_per_second); }},
  };
}

std::vector<Quantity> Efforts() {
  return {
      {"seconds_to_target", "time to target", true, nullptr, Effort::kSeconds},
      {"samples_to_target", "samples to target", true, nullptr, Effort::kSamples},
      {"updates_to_target", "updates to target", true, nullptr, Effort::kUpdates},
  };
}

bool AnyRunHas(const Comparison& comparison, const Quantity& quantity) {
  return std::any_of(comparison.modes.begin(), comparison.modes.end(), [&](const ComparedMode& mode) {
    return std::any_of(mode.runs.begin(), mode.runs.end(), [&](const ComparedRun& run) {
      return quantity.value != nullptr ? quantity.value(run.summary).has_value()
                                       : ToTarget(run.summary, quantity.effort).has_value();
    });
  });
}

void AddFirstOf(const std::vector<Quantity>& choices, const Comparison& comparison, std::vector<Quantity>* quantities) {
  for (const Quantity& choice : choices) {
    if (!AnyRunHas(comparison, choice)) continue;
    quantities->push_back(choice);
    return;
  }
}

}  // namespace

std::vector<Quantity> QuantitiesOf(const Comparison& comparison) {
  std::vector<Quantity> quantities;
  AddFirstOf(Scores(), comparison, &quantities);
  AddFirstOf(Speeds(), comparison, &quantities);
  if (comparison.target_accuracy <= 0) return quantities;
  for (const Quantity& effort : Efforts()) {
    if (AnyRunHas(comparison, effort)) quantities.push_back(effort);
  }
  return quantities;
}

}  // namespace rubato
