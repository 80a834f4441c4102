#include "coordinator/rules/policies/parts/ssp_replay.h"

#include <algorithm>
#include <cstddef>

namespace rubato::coordinator {
namespace {

// Steps of each worker: enough for a bound of some dozens to be felt.
constexpr size_t kSteps = 256;

struct Step {
  double begin = 0;
  double end = 0;
};

struct Replay {
  // By worker.
  std::vector<std::vector<Step>> steps;
  // When the first worker is through: what the others do after that, they do with nobody to wait for.
  double until = 0;
};

Replay Run(const std::vector<std::vector<double>>& seconds, double overhead, int64_t bound) {
  const size_t workers = seconds.size();
  Replay replay;
  replay.steps.assign(workers, std::vector<Step>(kSteps));
  // When everybody has done the step.
  std::vector<double> all_done(kSteps, 0);
  for (size_t step = 0; step < kSteps; ++step) {
    const bool gated = bound < static_cast<int64_t>(step);
    const double gate = gated ? all_done[step - 1 - static_cast<size_t>(bound)] : 0;
    for (size_t worker = 0; worker < workers; ++worker) {
      Step& now = replay.steps[worker][step];
      now.begin = std::max(gate, step == 0 ? 0 : replay.steps[worker][step - 1].end);
      now.end = now.begin + seconds[worker][step % seconds[worker].size()] + overhead;
      all_done[step] = std::max(all_done[step], now.end);
    }
  }
  replay.until = all_done.back();
  for (const std::vector<Step>& worker : replay.steps) replay.until = std::min(replay.until, worker.back().end);
  return replay;
}

double Rate(const Replay& replay) {
  size_t done = 0;
  for (const std::vector<Step>& worker : replay.steps) {
    for (const Step& step : worker) done += step.end <= replay.until ? 1 : 0;
  }
  return static_cast<double>(done) / replay.until;
}

}  // namespace

double SspStepsPerSecond(const std::vector<std::vector<double>>& seconds, double overhead, int64_t bound) {
  return Rate(Run(seconds, overhead, bound));
}

SspRun ReplaySsp(const std::vector<std::vector<double>>& seconds, double overhead, int64_t bound) {
  const Replay replay = Run(seconds, overhead, bound);
  SspRun run = {.steps_per_second = Rate(replay)};
  if (bound == 0) return run;
  std::vector<double> ends;
  for (const std::vector<Step>& worker : replay.steps) {
    for (const Step& step : worker) {
      if (step.end <= replay.until) ends.push_back(step.end);
    }
  }
  std::sort(ends.begin(), ends.end());
  for (const std::vector<Step>& worker : replay.steps) {
    for (const Step& step : worker) {
      if (step.end > replay.until) break;
      const auto before = std::upper_bound(ends.begin(), ends.end(), step.begin);
      // Without its own. Updates at the same moment come one after another.
      run.mean_staleness += static_cast<double>(std::upper_bound(before, ends.end(), step.end) - before - 1);
    }
  }
  run.mean_staleness /= static_cast<double>(ends.size());
  return run;
}

}  // namespace rubato::coordinator
