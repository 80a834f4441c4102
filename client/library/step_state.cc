#include "client/library/step_state.h"

#include <algorithm>

namespace rubato::client {

StepState::StepState(const std::vector<std::string>& tensors, const std::vector<std::string>& tables)
    : tensors_(tensors.size()), pushed_(tensors.size() + tables.size(), false) {
  for (const std::string& name : tensors) parts_.push_back("tensor " + name);
  for (const std::string& name : tables) parts_.push_back("table " + name);
}

std::string StepState::CheckBegin() const {
  if (complete()) return "";
  const size_t part = static_cast<size_t>(std::find(pushed_.begin(), pushed_.end(), false) - pushed_.begin());
  std::string error = "step " + std::to_string(step_) + ": " + parts_[part] + " was not pushed";
  if (missing_ > 1) error += ", and " + std::to_string(missing_ - 1) + " others";
  return error +
         (part < tensors_ ? "; rubato_push, rubato_push_absent or rubato_skip" : "; rubato_push_rows or rubato_skip");
}

std::string StepState::CheckAwait(uint32_t tensor) const {
  std::string error = CheckTensor(tensor);
  return error.empty() ? CheckBegin() : error;
}

void StepState::Begin(const StepBody& step) {
  if (step.rollbacks != rollbacks_) leases_.clear();
  rollbacks_ = step.rollbacks;
  step_ = step.step;
  begun_ = true;
  pushed_.assign(parts_.size(), false);
  missing_ = parts_.size();
  has_slice_ = false;
  examples_ = 0;
}

std::string StepState::CheckTensor(uint32_t tensor) const {
  if (tensor < tensors_) return "";
  return "tensor " + std::to_string(tensor) + ": the model has " + std::to_string(tensors_);
}

std::string StepState::CheckTable(uint32_t table) const {
  if (table < parts_.size() - tensors_) return "";
  return "table " + std::to_string(table) + ": the model has " + std::to_string(parts_.size() - tensors_);
}

std::string StepState::CheckPush(size_t part) const {
  if (!begun_) return parts_[part] + " is pushed, and no step was begun";
  if (pushed_[part]) return parts_[part] + " was pushed in step " + std::to_string(step_) + " already";
  return "";
}

void StepState::Count(size_t part) {
  pushed_[part] = true;
  --missing_;
}

std::string StepState::CountPush(size_t part, uint64_t examples, const char* instead) {
  if (std::string error = CheckPush(part); !error.empty()) return error;
  const std::string where = parts_[part] + " is pushed with " + std::to_string(examples) + " examples";
  if (examples == 0) return where + "; 1 or more, or " + instead;
  if (examples_ != 0 && examples != examples_) {
    return where + ", and others of step " + std::to_string(step_) + " with " + std::to_string(examples_) +
           "; a step has one number of examples";
  }
  examples_ = examples;
  Count(part);
  return "";
}

std::string StepState::Push(uint32_t tensor, uint64_t examples) {
  if (std::string error = CheckTensor(tensor); !error.empty()) return error;
  return CountPush(tensor, examples, "rubato_push_absent");
}

std::string StepState::PushAbsent(uint32_t tensor) {
  if (std::string error = CheckTensor(tensor); !error.empty()) return error;
  std::string error = CheckPush(tensor);
  if (error.empty()) Count(tensor);
  return error;
}

std::string StepState::PushRows(uint32_t table, uint64_t examples) {
  if (std::string error = CheckTable(table); !error.empty()) return error;
  return CountPush(tensors_ + table, examples, "rubato_skip");
}

std::string StepState::CheckAskRows(uint32_t table) const {
  if (std::string error = CheckTable(table); !error.empty()) return error;
  const std::string& name = parts_[tensors_ + table];
  if (!begun_) return name + " is asked for rows of the next step, and no step was begun";
  if (!pushed_[tensors_ + table]) return "";
  return name + " is asked for rows of the next step, and was pushed in step " + std::to_string(step_) +
         " already: they are asked for before that";
}

std::string StepState::Skip() {
  if (!begun_) return "no step was begun";
  pushed_.assign(parts_.size(), true);
  missing_ = 0;
  return "";
}

std::string StepState::CheckEpoch() const { return begun_ && complete() ? "" : CheckBeforePush("rubato_set_epoch"); }

std::string StepState::CheckBeforePush(const char* what) const {
  if (!begun_) return std::string(what) + ": no step was begun";
  if (missing_ == parts_.size()) return "";
  return std::string(what) + ": a part of step " + std::to_string(step_) + " was pushed already";
}

std::string StepState::SetSlice(const SliceBody& slice) {
  if (std::string error = CheckBeforePush("rubato_set_slice"); !error.empty()) return error;
  const std::string range = "[" + std::to_string(slice.begin) + ", " + std::to_string(slice.end) + ") of shard " +
                            std::to_string(slice.shard);
  if (has_slice_) return range + ": step " + std::to_string(step_) + " has a slice already";
  const auto lease = leases_.find(slice.shard);
  if (lease == leases_.end()) return range + ": the shard is not leased to this worker";
  if (slice.begin != lease->second.next || slice.end <= slice.begin || slice.end > lease->second.end) {
    return range + ": the next examples of it are in [" + std::to_string(lease->second.next) + ", " +
           std::to_string(lease->second.end) + ")";
  }
  has_slice_ = true;
  lease->second.next = slice.end;
  if (slice.end == lease->second.end) leases_.erase(lease);
  return "";
}

}  // namespace rubato::client
