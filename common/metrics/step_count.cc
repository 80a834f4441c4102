#include "common/metrics/step_count.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "common/metrics/buckets.h"

namespace rubato {

void CountStep(double seconds, double waited, int64_t examples, v1::WorkerProgress* progress) {
  progress->set_steps_total(progress->steps_total() + 1);
  progress->set_step_seconds_total(progress->step_seconds_total() + seconds);
  auto* counts = progress->mutable_step_seconds_counts();
  counts->Resize(static_cast<int>(kStepSecondsBounds.size()) + 1, 0);
  ++*counts->Mutable(static_cast<int>(BucketOf(kStepSecondsBounds, seconds)));
  // A running mean over about the last ten steps.
  progress->set_mean_step_seconds(progress->steps_total() == 1 ? seconds
                                                               : 0.9 * progress->mean_step_seconds() + 0.1 * seconds);
  auto* work = progress->mutable_work_seconds();
  if (work->size() == kRecentSteps) work->erase(work->begin());
  work->Add(static_cast<float>(std::max(0.0, seconds - waited)));
  auto* of_each = progress->mutable_work_examples();
  if (of_each->size() == kRecentSteps) of_each->erase(of_each->begin());
  of_each->Add(static_cast<uint32_t>(std::clamp<int64_t>(examples, 0, std::numeric_limits<uint32_t>::max())));
}

double WorkRate(const v1::WorkerProgress& progress) {
  const double seconds = std::accumulate(progress.work_seconds().begin(), progress.work_seconds().end(), 0.0);
  const double examples = std::accumulate(progress.work_examples().begin(), progress.work_examples().end(), 0.0);
  return seconds > 0 ? examples / seconds : 0;
}

double WorkQuantile(const v1::WorkerProgress& progress, double part) {
  std::vector<float> work(progress.work_seconds().begin(), progress.work_seconds().end());
  if (work.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(work.size())));
  const auto at = work.begin() + static_cast<std::ptrdiff_t>(std::clamp<size_t>(rank, 1, work.size()) - 1);
  std::nth_element(work.begin(), at, work.end());
  return *at;
}

}  // namespace rubato
