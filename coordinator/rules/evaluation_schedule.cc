#include "coordinator/rules/evaluation_schedule.h"

#include <cmath>

namespace rubato::coordinator {

EvaluationSchedule::Entry& EvaluationSchedule::Add(double epoch, int64_t at_step, bool final) {
  const uint64_t id = entries_.empty() ? 1 : entries_.rbegin()->first + 1;
  Entry& entry = entries_[id];
  entry.request.set_evaluation_id(id);
  entry.request.set_epoch(epoch);
  entry.request.set_at_step(at_step);
  entry.final = final;
  return entry;
}

std::optional<v1::Evaluate> EvaluationSchedule::Due(double epoch, int64_t at_step) {
  if (every_epochs_ <= 0 || final_id_ != 0 || pending() != nullptr) return std::nullopt;
  const double last = entries_.empty() ? 0 : entries_.rbegin()->second.request.epoch();
  if (epoch < (std::floor(last / every_epochs_) + 1) * every_epochs_) return std::nullopt;
  return Add(epoch, at_step, false).request;
}

v1::Evaluate EvaluationSchedule::Final(double epoch) {
  if (final_id_ == 0) final_id_ = Add(epoch, -1, true).request.evaluation_id();
  return entries_[final_id_].request;
}

const EvaluationSchedule::Entry* EvaluationSchedule::OnResult(const v1::EvaluationResult& result) {
  auto found = entries_.find(result.evaluation_id());
  if (found == entries_.end() || found->second.done) return nullptr;
  found->second.done = true;
  found->second.result = result;
  if (result.error().empty()) last_result_id_ = found->first;
  return &found->second;
}

void EvaluationSchedule::Restore(const v1::JournalEvaluation& record) {
  const uint64_t id = record.request().evaluation_id();
  Entry& entry = entries_[id];
  entry.request = record.request();
  entry.final = record.final();
  if (entry.final) final_id_ = id;
  if (record.has_result()) OnResult(record.result());
}

void EvaluationSchedule::GoBack(double epoch) {
  std::erase_if(entries_, [epoch](const auto& entry) {
    return !entry.second.done || entry.second.final || entry.second.request.epoch() > epoch;
  });
  final_id_ = 0;
  last_result_id_ = 0;
  for (const auto& [id, entry] : entries_) {
    if (entry.result.error().empty()) last_result_id_ = id;
  }
}

const v1::Evaluate* EvaluationSchedule::pending() const {
  if (entries_.empty() || entries_.rbegin()->second.done) return nullptr;
  return &entries_.rbegin()->second.request;
}

const v1::EvaluationResult* EvaluationSchedule::last_result() const {
  return last_result_id_ == 0 ? nullptr : &entries_.at(last_result_id_).result;
}

}  // namespace rubato::coordinator
