#include "client/library/step_state.h"

#include <algorithm>

namespace rubato::client {

std::string StepState::CheckBegin() const {
  if (complete()) return "";
  const size_t tensor = static_cast<size_t>(std::find(pushed_.begin(), pushed_.end(), false) - pushed_.begin());
  std::string error = "step " + std::to_string(step_) + ": tensor " + names_[tensor] + " was not pushed";
  if (missing_ > 1) error += ", and " + std::to_string(missing_ - 1) + " others";
  return error + "; rubato_push, rubato_push_absent or rubato_skip";
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
  pushed_.assign(names_.size(), false);
  missing_ = names_.size();
  has_slice_ = false;
  examples_ = 0;
}

std::string StepState::CheckTensor(uint32_t tensor) const {
  if (tensor < names_.size()) return "";
  return "tensor " + std::to_string(tensor) + ": the model has " + std::to_string(names_.size());
}

std::string StepState::CheckPush(uint32_t tensor) const {
  if (std::string error = CheckTensor(tensor); !error.empty()) return error;
  if (!begun_) return "tensor " + names_[tensor] + " is pushed, and no step was begun";
  if (pushed_[tensor]) {
    return "tensor " + names_[tensor] + " was pushed in step " + std::to_string(step_) + " already";
  }
  return "";
}

void StepState::Count(uint32_t tensor) {
  pushed_[tensor] = true;
  --missing_;
}

std::string StepState::Push(uint32_t tensor, uint64_t examples) {
  if (std::string error = CheckPush(tensor); !error.empty()) return error;
  const std::string where = "tensor " + names_[tensor] + " is pushed with " + std::to_string(examples) + " examples";
  if (examples == 0) return where + "; 1 or more, or rubato_push_absent";
  if (examples_ != 0 && examples != examples_) {
    return where + ", and others of step " + std::to_string(step_) + " with " + std::to_string(examples_) +
           "; a step has one number of examples";
  }
  examples_ = examples;
  Count(tensor);
  return "";
}

std::string StepState::PushAbsent(uint32_t tensor) {
  std::string error = CheckPush(tensor);
  if (error.empty()) Count(tensor);
  return error;
}

std::string StepState::Skip() {
  if (!begun_) return "no step was begun";
  pushed_.assign(names_.size(), true);
  missing_ = 0;
  return "";
}

std::string StepState::CheckEpoch() const { return begun_ && complete() ? "" : CheckBeforePush("rubato_set_epoch"); }

std::string StepState::CheckBeforePush(const char* what) const {
  if (!begun_) return std::string(what) + ": no step was begun";
  if (missing_ == names_.size()) return "";
  return std::string(what) + ": a tensor of step " + std::to_string(step_) + " was pushed already";
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
