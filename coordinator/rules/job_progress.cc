#include "coordinator/rules/job_progress.h"

#include <algorithm>
#include <numeric>

#include "common/task.h"

namespace rubato::coordinator {
namespace {

constexpr size_t kHistory = 6;

void AddTo(const v1::WorkerProgress& from, ProgressTotals* totals) {
  totals->step = std::max(totals->step, from.step());
  if (from.epoch() >= totals->epoch && from.learning_rate() > 0) totals->learning_rate = from.learning_rate();
  totals->epoch = std::max(totals->epoch, from.epoch());
  totals->examples += from.examples_total();
  totals->loss += from.loss_total();
  totals->correct += from.correct_total();
  totals->data_seconds += from.data_seconds_total();
  totals->compute_seconds += from.compute_seconds_total();
  totals->push_seconds += from.push_seconds_total();
  totals->pull_wait_seconds += from.pull_wait_seconds_total();
  totals->sent_bytes += from.sent_bytes_total();
  totals->received_bytes += from.received_bytes_total();
  totals->non_finite += from.non_finite_total();
  totals->overflows += from.overflow_total();
  const size_t counts = static_cast<size_t>(from.staleness_counts_size());
  if (totals->staleness_counts.size() < counts) totals->staleness_counts.resize(counts);
  for (size_t i = 0; i < counts; ++i) totals->staleness_counts[i] += from.staleness_counts(static_cast<int>(i));
}

// The counts of earlier incarnations added to the last one's.
void AddCounts(const v1::WorkerProgress& from, v1::WorkerProgress* to) {
  to->set_examples_total(to->examples_total() + from.examples_total());
  to->set_steps_total(to->steps_total() + from.steps_total());
  to->set_data_seconds_total(to->data_seconds_total() + from.data_seconds_total());
  to->set_compute_seconds_total(to->compute_seconds_total() + from.compute_seconds_total());
  to->set_push_seconds_total(to->push_seconds_total() + from.push_seconds_total());
  to->set_pull_wait_seconds_total(to->pull_wait_seconds_total() + from.pull_wait_seconds_total());
  to->set_overflow_total(to->overflow_total() + from.overflow_total());
}

}  // namespace

double ProgressTotals::WaitingShare() const {
  double all = data_seconds + compute_seconds + push_seconds + pull_wait_seconds;
  return all > 0 ? pull_wait_seconds / all : 0;
}

double ProgressTotals::StalenessMean() const {
  const double count = StalenessCount();
  return count > 0 ? StalenessSum() / count : 0;
}

double ProgressTotals::StalenessSum() const {
  double sum = 0;
  for (size_t i = 0; i < staleness_counts.size(); ++i) {
    sum += static_cast<double>(i) * static_cast<double>(staleness_counts[i]);
  }
  return sum;
}

double ProgressTotals::StalenessCount() const {
  return std::accumulate(staleness_counts.begin(), staleness_counts.end(), 0.0);
}

void JobProgress::OnHeartbeat(const v1::TaskId& worker, const v1::WorkerProgress& progress) {
  std::vector<Entry>& entries = workers_[worker.index()];
  auto entry = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return SameTask(e.worker, worker); });
  if (entry == entries.end()) {
    entries.push_back({worker, progress});
  } else if (progress.steps_total() >= entry->progress.steps_total()) {
    entry->progress = progress;
  }
}

ProgressTotals JobProgress::Totals() const {
  ProgressTotals totals = base_;
  for (const auto& [index, entries] : workers_) {
    for (const Entry& entry : entries) AddTo(entry.progress, &totals);
  }
  return totals;
}

const v1::WorkerProgress* JobProgress::Find(const v1::TaskId& worker) const {
  auto found = workers_.find(worker.index());
  if (worker.role() != v1::TaskId::WORKER || found == workers_.end()) return nullptr;
  for (const Entry& entry : found->second) {
    if (SameTask(entry.worker, worker)) return &entry.progress;
  }
  return nullptr;
}

void JobProgress::StartInterval(absl::Time now) {
  before_ = Totals();
  since_ = now;
  history_ = {{now, before_.examples}};
}

JobProgress::Interval JobProgress::TakeInterval(absl::Time now) {
  Interval interval = last_;
  interval.totals = Totals();
  const int64_t examples = interval.totals.examples - before_.examples;
  if (examples > 0) {
    interval.measured = true;
    interval.loss = (interval.totals.loss - before_.loss) / static_cast<double>(examples);
    interval.accuracy = (interval.totals.correct - before_.correct) / static_cast<double>(examples);
  }
  const double seconds = absl::ToDoubleSeconds(now - since_);
  interval.examples_per_second = seconds > 0 ? static_cast<double>(examples) / seconds : 0;
  before_ = interval.totals;
  since_ = now;
  history_.emplace_back(now, interval.totals.examples);
  if (history_.size() > kHistory) history_.pop_front();
  last_ = interval;
  return interval;
}

std::map<uint32_t, v1::WorkerProgress> JobProgress::ByWorker() const {
  std::map<uint32_t, v1::WorkerProgress> by_worker;
  for (const auto& [index, entries] : workers_) {
    v1::WorkerProgress sum = entries.back().progress;
    for (size_t i = 0; i + 1 < entries.size(); ++i) AddCounts(entries[i].progress, &sum);
    by_worker[index] = sum;
  }
  return by_worker;
}

double JobProgress::ExamplesPerSecond() const {
  if (history_.size() < 2) return 0;
  const double seconds = absl::ToDoubleSeconds(history_.back().first - history_.front().first);
  return seconds > 0 ? static_cast<double>(history_.back().second - history_.front().second) / seconds : 0;
}

}  // namespace rubato::coordinator
