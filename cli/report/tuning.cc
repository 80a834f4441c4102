#include "cli/report/tuning.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rubato {
namespace {

// Less than any that a run may have.
constexpr double kNothing = -INFINITY;

// How good the run's weights are in the end, first by what there is a target for; more is better.
double Score(const RunSummary& run, const Target& target) {
  for (const Metric metric :
       {target.exists() ? target.metric : kMetrics[0], Metric::kAuc, Metric::kAccuracy, Metric::kR2}) {
    const std::optional<double> value = FinalValue(run, metric);
    if (value.has_value()) return metric == Metric::kRmse ? -*value : *value;
  }
  const std::optional<double>& loss = run.final_loss.has_value() ? run.final_loss : run.training_loss;
  return loss.has_value() && std::isfinite(*loss) ? -*loss : kNothing;
}

bool IsBetter(const RunSummary& run, const RunSummary& other, const Target& target) {
  if (run.ok != other.ok) return run.ok;
  if (run.seconds_to_target.has_value() != other.seconds_to_target.has_value())
    return run.seconds_to_target.has_value();
  if (run.seconds_to_target.has_value()) return *run.seconds_to_target < *other.seconds_to_target;
  return Score(run, target) > Score(other, target);
}

}  // namespace

std::vector<double> RatesToTry(double learning_rate) {
  std::vector<double> rates;
  for (double factor : {0.25, 0.5, 1.0, 2.0, 4.0}) rates.push_back(factor * learning_rate);
  return rates;
}

std::optional<size_t> BestOf(const std::vector<TuningRun>& runs, const Target& target) {
  std::optional<size_t> best;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].summary.ok && (!best.has_value() || IsBetter(runs[i].summary, runs[*best].summary, target))) best = i;
  }
  return best;
}

std::string TuningText(const Tuning& tuning) {
  const std::string tried = absl::StrJoin(
      tuning.runs, ", ", [](std::string* out, const TuningRun& run) { absl::StrAppend(out, run.learning_rate); });
  if (!tuning.best.has_value())
    return absl::StrCat(tuning.mode, ": no run with a learning rate of ", tried, " ended well");
  return absl::StrCat(tuning.mode, ": learning rate ", tuning.runs[*tuning.best].learning_rate, " of ", tried,
                      tuning.at_edge() ? "; it is at the edge, so a better one may be beyond" : "");
}

}  // namespace rubato
