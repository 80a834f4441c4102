#include "cli/report/against_baseline.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/report/statistics/holm.h"
#include "cli/report/statistics/paired_exchange.h"

namespace rubato {
namespace {

constexpr double kThreshold = 0.05;

const ComparedMode& BaselineOf(const Comparison& comparison) {
  for (const ComparedMode& mode : comparison.modes) {
    if (mode.name == comparison.baseline) return mode;
  }
  return comparison.modes.front();
}

const ComparedRun* RunOfSeed(const ComparedMode& mode, uint64_t seed) {
  for (const ComparedRun& run : mode.runs) {
    if (run.seed == seed) return &run;
  }
  return nullptr;
}

// Both modes' numbers of the seeds that have both, and how many have not. `value` gives a run's number, or none.
template <typename T, typename Value>
std::vector<std::pair<T, T>> Pairs(const ComparedMode& mode, const ComparedMode& baseline, const Value& value,
                                   BaselineResult* result) {
  std::vector<std::pair<T, T>> pairs;
  for (const ComparedRun& base_run : baseline.runs) {
    const ComparedRun* run = RunOfSeed(mode, base_run.seed);
    const std::optional<T> ours = run != nullptr ? value(*run) : std::nullopt;
    const std::optional<T> base = value(base_run);
    if (ours.has_value() && base.has_value()) {
      pairs.emplace_back(*ours, *base);
    } else {
      ++result->left_out;
    }
  }
  result->pairs = static_cast<int>(pairs.size());
  return pairs;
}

void CompareValues(const ComparedMode& mode, const ComparedMode& baseline, BaselineResult* result) {
  const Quantity& quantity = result->quantity;
  const auto value = [&](const ComparedRun& run) {
    return run.summary.ok ? quantity.value(run.summary) : std::optional<double>();
  };
  std::vector<double> differences;
  double sum = 0;
  for (const auto& [ours, base] : Pairs<double>(mode, baseline, value, result)) {
    differences.push_back(quantity.is_ratio ? std::log(ours / base) : ours - base);
    sum += differences.back();
  }
  if (differences.size() < 2) return;
  result->estimate = sum / static_cast<double>(differences.size());
  result->interval = BootstrapIntervalOfMean(differences);
  result->p = SignFlipP(differences);
}

// The logarithm of the ratio of restricted means.
double LogRatio(const std::vector<Duration>& ours, const std::vector<Duration>& base, const std::vector<int>& times,
                double horizon) {
  return std::log(RestrictedMean(KaplanMeier(ours, times), horizon) /
                  RestrictedMean(KaplanMeier(base, times), horizon));
}

void CompareEfforts(const ComparedMode& mode, const ComparedMode& baseline, double horizon, BaselineResult* result) {
  const auto value = [&](const ComparedRun& run) { return ToTarget(run.summary, result->quantity.effort); };
  std::vector<Duration> ours, base;
  for (const auto& [our_duration, base_duration] : Pairs<Duration>(mode, baseline, value, result)) {
    ours.push_back(our_duration);
    base.push_back(base_duration);
    result->missed += our_duration.reached ? 0 : 1;
    result->baseline_missed += base_duration.reached ? 0 : 1;
  }
  result->horizon = horizon;
  const bool nobody_reached = result->missed == result->pairs && result->baseline_missed == result->pairs;
  if (result->pairs < 2 || nobody_reached || horizon <= 0) return;
  result->estimate = LogRatio(ours, base, {}, horizon);
  result->interval = BootstrapInterval(
      result->pairs, [&](const std::vector<int>& times) { return LogRatio(ours, base, times, horizon); });
  result->p = ExchangeP(result->pairs, [&](const std::vector<bool>& exchanged) {
    std::vector<Duration> left = ours, right = base;
    for (size_t i = 0; i < left.size(); ++i) {
      if (exchanged[i]) std::swap(left[i], right[i]);
    }
    return LogRatio(left, right, {}, horizon);
  });
}

int PairsNeeded(size_t compared_modes) {
  int pairs = 1;
  while (static_cast<double>(compared_modes) * SmallestP(pairs) >= kThreshold) ++pairs;
  return pairs;
}

// Ratios were compared as logarithms.
void TakeBackLogarithms(BaselineResult* result) {
  if (!result->quantity.is_ratio || !result->estimate.has_value()) return;
  result->estimate = std::exp(*result->estimate);
  result->interval = Interval{std::exp(result->interval->low), std::exp(result->interval->high)};
}

// Of all modes in one quantity.
void Adjust(std::vector<BaselineResult>* results) {
  std::vector<double> p;
  int most_pairs = 0;
  for (const BaselineResult& result : *results) {
    if (!result.p.has_value()) continue;
    p.push_back(*result.p);
    most_pairs = std::max(most_pairs, result.pairs);
  }
  const std::vector<double> adjusted = HolmAdjusted(p);
  auto next = adjusted.begin();
  for (BaselineResult& result : *results) {
    if (!result.p.has_value()) continue;
    result.p_holm = *next++;
    result.can_tell = SmallestP(result.pairs) < kThreshold && most_pairs >= PairsNeeded(p.size());
  }
}

// Which quantities lack how many seeds, for each mode.
std::vector<std::string> NotesOnSeeds(const AgainstBaseline& against) {
  std::map<std::pair<std::string, int>, std::vector<std::string>> labels;
  for (const BaselineResult& result : against.results) {
    if (result.left_out > 0) labels[{result.mode, result.left_out}].push_back(result.quantity.label);
  }
  std::vector<std::string> notes;
  for (const auto& [mode_and_seeds, quantities] : labels) {
    const auto& [mode, seeds] = mode_and_seeds;
    notes.push_back(absl::StrCat(mode, ": ", seeds, seeds == 1 ? " seed is" : " seeds are", " left out of ",
                                 absl::StrJoin(quantities, ", "), ", where a run of ", mode, " or of ",
                                 against.baseline, " failed or has no such number"));
  }
  return notes;
}

std::string Amount(Effort effort, double amount) {
  switch (effort) {
    case Effort::kSeconds:
      return absl::StrFormat("%.1f s", amount);
    case Effort::kSamples:
      return absl::StrFormat("%.0f samples", amount);
    case Effort::kUpdates:
      return absl::StrFormat("%.0f updates", amount);
  }
  return "";
}

// How many runs missed the target, and what is compared then; empty if none did.
std::string NoteOnMisses(const AgainstBaseline& against) {
  std::vector<std::string> missed, horizons;
  bool any = false;
  for (const BaselineResult& result : against.results) {
    if (!result.horizon.has_value()) continue;
    any = any || result.missed + result.baseline_missed > 0;
    const std::string horizon = Amount(result.quantity.effort, *result.horizon);
    if (horizons.empty() || horizons.back() != horizon) horizons.push_back(horizon);
    if (horizons.size() > 1) continue;  // All that is asked of a run is asked of its seconds.
    if (missed.empty())
      missed.push_back(absl::StrCat(result.baseline_missed, " of ", result.pairs, " in ", against.baseline));
    missed.push_back(absl::StrCat(result.missed, " of ", result.pairs, " in ", result.mode));
  }
  if (!any) return "";
  return absl::StrCat("Runs that missed the target: ", absl::StrJoin(missed, ", "),
                      "; what it takes is compared by restricted means (Kaplan-Meier) up to ",
                      absl::StrJoin(horizons, ", "));
}

// If there are pairs too few for p to say anything.
std::string NoteOnPairs(const AgainstBaseline& against) {
  const bool can_tell = std::none_of(against.results.begin(), against.results.end(), [](const BaselineResult& result) {
    return result.p.has_value() && !result.can_tell;
  });
  if (can_tell) return "";
  return absl::StrCat("Too few pairs for a verdict: whatever the numbers, p < 0.05 takes at least ",
                      against.pairs_needed, " (--seeds=", against.pairs_needed,
                      "), so no p is shown; intervals of under 5 pairs are too narrow");
}

}  // namespace

std::optional<AgainstBaseline> CompareWithBaseline(const Comparison& comparison) {
  if (comparison.modes.size() < 2) return std::nullopt;
  const ComparedMode& baseline = BaselineOf(comparison);
  AgainstBaseline against;
  against.baseline = baseline.name;
  against.seeds = static_cast<int>(baseline.runs.size());
  against.pairs_needed = PairsNeeded(comparison.modes.size() - 1);
  if (against.seeds < 2) return against;
  for (const Quantity& quantity : QuantitiesOf(comparison)) {
    const double horizon = quantity.value == nullptr ? TargetHorizon(comparison, quantity.effort) : 0;
    std::vector<BaselineResult> results;
    for (const ComparedMode& mode : comparison.modes) {
      if (&mode == &baseline) continue;
      BaselineResult& result = results.emplace_back(BaselineResult{mode.name, quantity});
      if (quantity.value != nullptr) {
        CompareValues(mode, baseline, &result);
      } else {
        CompareEfforts(mode, baseline, horizon, &result);
      }
      TakeBackLogarithms(&result);
    }
    Adjust(&results);
    against.results.insert(against.results.end(), results.begin(), results.end());
  }
  return against;
}

std::vector<std::string> NotesOn(const AgainstBaseline& against) {
  std::vector<std::string> notes;
  if (against.seeds < 2) {
    return {absl::StrCat("One seed says nothing about chance: intervals take at least 2, and p < 0.05 at least ",
                         against.pairs_needed, " (--seeds=", against.pairs_needed, ")")};
  }
  for (std::string note : {NoteOnPairs(against), NoteOnMisses(against)}) {
    if (!note.empty()) notes.push_back(std::move(note));
  }
  for (std::string& note : NotesOnSeeds(against)) notes.push_back(std::move(note));
  return notes;
}

}  // namespace rubato
