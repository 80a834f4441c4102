#include "cli/report/quantities.h"

#include <algorithm>

namespace rubato {
namespace {

template <Metric kMetric>
Quantity FinalQuantity() {
  return {std::string(MetricField(kMetric)), std::string(MetricLabel(kMetric)), false,
          [](const RunSummary& run) { return FinalValue(run, kMetric); }};
}

Quantity QuantityOf(Metric metric) {
  switch (metric) {
    case Metric::kAuc:
      return FinalQuantity<Metric::kAuc>();
    case Metric::kRecall:
      return FinalQuantity<Metric::kRecall>();
    case Metric::kAccuracy:
      return FinalQuantity<Metric::kAccuracy>();
    case Metric::kR2:
      return FinalQuantity<Metric::kR2>();
    case Metric::kRmse:
      break;
  }
  return FinalQuantity<Metric::kRmse>();
}

std::vector<Quantity> OtherScores() {
  return {
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
  std::vector<Quantity> scores;
  for (const Metric metric : MetricsOf(comparison)) scores.push_back(QuantityOf(metric));
  const std::vector<Quantity> others = OtherScores();
  scores.insert(scores.end(), others.begin(), others.end());
  AddFirstOf(scores, comparison, &quantities);
  AddFirstOf(Speeds(), comparison, &quantities);
  if (!comparison.target.exists()) return quantities;
  for (const Quantity& effort : Efforts()) {
    if (AnyRunHas(comparison, effort)) quantities.push_back(effort);
  }
  return quantities;
}

}  // namespace rubato
