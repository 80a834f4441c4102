#include "server/partition_progress.h"

#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "common/gradient_noise/gradient_meter.h"
#include "common/task.h"

namespace rubato::server {
namespace {

void AddCounts(const v1::ServerProgress& from, v1::ServerProgress* to) {
  to->set_updates_total(to->updates_total() + from.updates_total());
  to->set_duplicates_total(to->duplicates_total() + from.duplicates_total());
  to->set_dropped_total(to->dropped_total() + from.dropped_total());
  to->set_non_finite_total(to->non_finite_total() + from.non_finite_total());
  to->set_hyperparameter_disagreements_total(to->hyperparameter_disagreements_total() +
                                             from.hyperparameter_disagreements_total());
  to->set_received_bytes_total(to->received_bytes_total() + from.received_bytes_total());
  to->set_sent_bytes_total(to->sent_bytes_total() + from.sent_bytes_total());
  to->set_memory_bytes(to->memory_bytes() + from.memory_bytes());
  to->set_pushes_total(to->pushes_total() + from.pushes_total());
  to->set_pulls_total(to->pulls_total() + from.pulls_total());
  to->set_waits_total(to->waits_total() + from.waits_total());
  to->set_wait_seconds_total(to->wait_seconds_total() + from.wait_seconds_total());
  to->set_table_rows(to->table_rows() + from.table_rows());
  to->set_table_bytes(to->table_bytes() + from.table_bytes());
  to->set_rows_sent_total(to->rows_sent_total() + from.rows_sent_total());
  to->set_rows_applied_total(to->rows_applied_total() + from.rows_applied_total());
  to->set_rows_removed_total(to->rows_removed_total() + from.rows_removed_total());
  to->set_rows_not_admitted_total(to->rows_not_admitted_total() + from.rows_not_admitted_total());
  to->set_queue_length(to->queue_length() + from.queue_length());
  AddMoments(from.gradient_moments(), to->mutable_gradient_moments());
  to->set_highest_started_step(std::max(to->highest_started_step(), from.highest_started_step()));
}

// Both have them in order of worker.
void AddClocks(const v1::ServerProgress& from, v1::ServerProgress* to) {
  google::protobuf::RepeatedPtrField<v1::MemberClock> both;
  both.Reserve(std::max(from.clocks_size(), to->clocks_size()));
  auto own = to->mutable_clocks()->begin();
  for (const v1::MemberClock& clock : from.clocks()) {
    while (own != to->mutable_clocks()->end() && own->worker() < clock.worker()) *both.Add() = std::move(*own++);
    *both.Add() = clock;
    if (own == to->mutable_clocks()->end() || own->worker() != clock.worker()) continue;
    v1::MemberClock& last = both[both.size() - 1];
    last.set_clock(std::min(own++->clock(), clock.clock()));
  }
  while (own != to->mutable_clocks()->end()) *both.Add() = std::move(*own++);
  to->mutable_clocks()->Swap(&both);
}

void AddTask(const v1::TaskId& task, std::vector<v1::TaskId>* tasks) {
  const bool known = std::any_of(tasks->begin(), tasks->end(), [&](const v1::TaskId& t) { return SameTask(t, task); });
  if (!known) tasks->push_back(task);
}

void AddHeld(const std::vector<PartitionProgress>& partitions, v1::ServerProgress* to) {
  // By worker and step.
  std::map<std::pair<uint32_t, int64_t>, HeldStart> starts;
  for (const PartitionProgress& partition : partitions) {
    for (const HeldStart& held : partition.held) {
      HeldStart& start = starts[{held.worker, held.step}];
      for (const v1::TaskId& task : held.waiting_for) AddTask(task, &start.waiting_for);
      start.waits_for_coordinator |= held.waits_for_coordinator;
    }
  }
  for (auto& [key, start] : starts) {
    std::sort(start.waiting_for.begin(), start.waiting_for.end(),
              [](const v1::TaskId& a, const v1::TaskId& b) { return a.index() < b.index(); });
    v1::HeldPull* held = to->add_held();
    held->set_worker(key.first);
    held->set_step(key.second);
    held->set_waiting_for(DescribeWait(start.waiting_for, start.waits_for_coordinator));
  }
}

}  // namespace

v1::ServerProgress SumProgress(const std::vector<PartitionProgress>& partitions) {
  v1::ServerProgress total;
  total.set_highest_started_step(-1);
  for (const PartitionProgress& partition : partitions) {
    AddCounts(partition.counts, &total);
    AddClocks(partition.counts, &total);
  }
  AddHeld(partitions, &total);
  return total;
}

}  // namespace rubato::server
