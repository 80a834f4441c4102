#include "common/straggler/straggler.h"

#include <cmath>
#include <vector>

#include "common/random.h"
#include "common/straggler/draws.h"

namespace rubato {

Straggler::Straggler(const StragglerModel& model, const Place& place)
    : model_(model), place_(place), worker_factor_(WorkerFactor()) {
  if (model_.markov.has_value()) episodes_.emplace(*model_.markov, place_.seed, place_.worker);
}

StepDelay Straggler::At(int64_t step) { return {worker_factor_ * StepFactor(step), Added(step)}; }

double Straggler::WorkerFactor() const {
  double factor = model_.factor.value_or(1);
  if (model_.rank.has_value()) {
    const double rank = place_.worker + 1.0;
    factor *= *model_.rank == StragglerModel::Rank::kSquareRoot ? std::sqrt(rank) : rank;
  }
  if (model_.spread.has_value()) {
    Random random(place_.seed, StreamId("straggler spread", place_.worker));
    factor *= DrawGamma(*model_.spread, &random);
  }
  return factor;
}

double Straggler::StepFactor(int64_t step) {
  double factor = 1;
  if (const auto& bimodal = model_.bimodal) {
    Random random(place_.seed, StreamId("straggler bimodal", place_.worker, static_cast<uint64_t>(step)));
    if (random.Uniform() < bimodal->probability) factor *= bimodal->factor;
  }
  if (episodes_.has_value() && episodes_->Contain(step)) factor *= model_.markov->factor;
  return factor;
}

absl::Duration Straggler::Added(int64_t step) const {
  const auto stream = [&](const char* purpose) {
    return Random(place_.seed, StreamId(purpose, place_.worker, static_cast<uint64_t>(step)));
  };
  absl::Duration added = model_.sleep.value_or(absl::ZeroDuration());
  if (model_.exponential_mean.has_value()) {
    Random random = stream("straggler exp");
    added += *model_.exponential_mean * DrawExponential(&random);
  }
  if (const auto& pareto = model_.pareto) {
    Random random = stream("straggler pareto");
    added += pareto->scale * DrawPareto(pareto->shape, &random);
  }
  if (const auto& gamma = model_.gamma) {
    Random random = stream("straggler gamma");
    added += gamma->mean * DrawGamma(gamma->variation, &random);
  }
  if (model_.trace.has_value()) added += absl::Seconds(TraceSeconds(step));
  return added;
}

double Straggler::TraceSeconds(int64_t step) const {
  const std::vector<double>& seconds = *model_.trace->seconds;
  const int64_t lines = static_cast<int64_t>(seconds.size());
  const int64_t begin = place_.worker * lines / place_.workers;
  return seconds[static_cast<size_t>((step % lines + begin) % lines)];
}

}  // namespace rubato
