#include "cli/report/work_done.h"

#include <algorithm>

namespace rubato {
namespace {

// Steps of all workers: the record counts each of them by its staleness.
double WorkerSteps(const v1::ProgressLine& line) {
  double steps = 0;
  for (const double count : line.staleness_counts()) steps += count;
  return steps;
}

// Between two lines; the mode may have been changed before.
double UpdatesBetween(const v1::ProgressLine& before, const v1::ProgressLine& after) {
  if (after.mode() == v1::SYNC) return after.step() - before.step();
  const double steps = WorkerSteps(after) - WorkerSteps(before);
  // If the job went back to a checkpoint, workers count from 0 again.
  return steps < 0 ? WorkerSteps(after) : steps;
}

// Up to so many epochs.
std::optional<double> UpdatesBy(const RunRecord& record, double epoch) {
  if (record.progress.empty()) return std::nullopt;
  double updates = 0;
  v1::ProgressLine before;
  for (const v1::ProgressLine& line : record.progress) {
    const double between = UpdatesBetween(before, line);
    if (line.epoch() >= epoch) {
      const double length = line.epoch() - before.epoch();
      return updates + (length > 0 ? between * std::max(0.0, epoch - before.epoch()) / length : 0);
    }
    updates += between;
    before = line;
  }
  return updates;
}

}  // namespace

WorkDone WorkAt(const RunRecord& record, const v1::EvaluationLine& evaluation) {
  WorkDone work;
  if (evaluation.epoch() <= 0) return work;
  const bool knows_size = record.start.has_value() && record.start->train_examples() > 0;
  if (knows_size) work.samples = evaluation.epoch() * record.start->train_examples();
  work.updates = UpdatesBy(record, evaluation.epoch());
  return work;
}

WorkDone WorkAtEnd(const RunRecord& record) {
  WorkDone work;
  if (record.progress.empty()) return work;
  double updates = 0;
  v1::ProgressLine before;
  for (const v1::ProgressLine& line : record.progress) {
    updates += UpdatesBetween(before, line);
    before = line;
  }
  if (before.examples() > 0) work.samples = before.examples();
  work.updates = updates;
  return work;
}

}  // namespace rubato
