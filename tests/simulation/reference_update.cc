#include "tests/simulation/reference_update.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tests/simulation/chunk_state.h"
#include "tests/simulation/sim_push.h"

namespace rubato::simulation {
namespace {

using Rates = std::pair<double, double>;  // Learning rate and weight decay.

std::optional<Rates> RatesOf(const PushId& push, uint32_t group) {
  for (const v1::GroupHyperparameters& said : HyperparametersOf(push)) {
    if (said.group() == group) return Rates(said.learning_rate(), said.weight_decay());
  }
  return std::nullopt;
}

}  // namespace

ReferenceUpdate UpdateByReference(const Scenario& scenario, uint32_t chunk, double before, double learning_rate_scale,
                                  std::vector<v1::UpdateRecord> contributions) {
  std::sort(contributions.begin(), contributions.end(),
            [](const v1::UpdateRecord& a, const v1::UpdateRecord& b) { return a.worker() < b.worker(); });
  ReferenceUpdate reference;
  double sum = 0;
  uint64_t examples = 0;
  size_t batches = 0;
  std::optional<Rates> rates;
  for (const v1::UpdateRecord& record : contributions) {
    const PushId push(record.incarnation(), record.step());
    sum += GradientOf(push, chunk) * static_cast<double>(record.examples());
    examples += record.examples();
    batches += record.examples() > 0 ? 1 : 0;
    reference.partly_absent |= record.examples() == 0;
    if (!scenario.clients) continue;
    const std::optional<Rates> said = RatesOf(push, GroupOf(chunk, scenario.chunks));
    if (!said.has_value()) continue;
    reference.due.disagreement |= rates.has_value() && *said != *rates;
    reference.by_later_member |= !rates.has_value() && &record != &contributions.front();
    if (!rates.has_value()) rates = said;
  }
  reference.of_nothing = examples == 0;
  reference.partly_absent &= examples > 0;
  if (examples == 0) {
    // The mean of nothing is zero. Other rules change nothing then, and there is nothing to disagree about.
    reference.due.value = scenario.mean ? 0 : before;
    reference.due.disagreement &= scenario.mean;
    return reference;
  }
  const double mean = sum / static_cast<double>(examples);
  if (scenario.mean) {
    reference.due.value = mean;
    return reference;
  }
  // The job's rate is for a batch of each contribution; a push says the rate of what there is.
  const double share = static_cast<double>(batches) / static_cast<double>(contributions.size());
  const auto [learning_rate, weight_decay] = rates.value_or(Rates(MakeOptimizer(scenario).learning_rate() * share, 0));
  reference.due.value = before - learning_rate_scale * learning_rate * (mean + weight_decay * before);
  return reference;
}

}  // namespace rubato::simulation
