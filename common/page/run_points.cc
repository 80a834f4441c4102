#include "common/page/run_points.h"

#include <cmath>

namespace rubato {
namespace {

using Json = nlohmann::ordered_json;

template <typename Line>
Json LossOf(const Line& line) {
  return line.has_loss() ? Json(line.loss()) : Json(nullptr);
}

// Null if there were no pushes.
Json StalenessSince(const v1::ProgressLine& before, const v1::ProgressLine& line) {
  double sum = 0, steps = 0;
  for (int staleness = 0; staleness < line.staleness_counts_size(); ++staleness) {
    const double earlier = staleness < before.staleness_counts_size() ? before.staleness_counts(staleness) : 0;
    const double count = line.staleness_counts(staleness) - earlier;
    // If the job went back to a checkpoint, workers count from 0 again.
    if (count < 0) return StalenessSince({}, line);
    sum += count * staleness;
    steps += count;
  }
  return steps > 0 ? Json(sum / steps) : Json(nullptr);
}

}  // namespace

Json ProgressPoint(const v1::ProgressLine& before, const v1::ProgressLine& line) {
  return {line.t(),
          line.epoch(),
          line.step(),
          LossOf(line),
          line.examples_per_second(),
          line.has_accuracy() ? Json(line.accuracy()) : Json(nullptr),
          StalenessSince(before, line)};
}

Json EvaluationPoint(const v1::EvaluationLine& line) {
  Json score = nullptr, auc = nullptr, rmse = nullptr, recall = nullptr;
  if (line.has_accuracy()) score = line.accuracy();
  if (line.has_auc()) auc = line.auc();
  if (line.has_recall()) recall = line.recall();
  if (line.has_r2()) score = line.r2();
  // The loss of a regression is the mean squared error.
  if (line.has_r2() && line.has_loss()) rmse = std::sqrt(line.loss());
  return {line.t(), line.epoch(), line.step(), LossOf(line), score, auc, rmse, recall};
}

}  // namespace rubato
