#include "client/sidecar/arrivals.h"

#include <algorithm>

namespace rubato::client {

void Arrivals::Want(uint32_t request, uint32_t tensor) {
  uint32_t there = 0;
  {
    MutexLock lock(mu_);
    used_ = true;
    waiting_.reset();
    if (tensor >= there_) {
      waiting_ = {request, tensor};
      return;
    }
    there = there_;
    told_ = std::max(told_, there);
  }
  answer_(request, there);
}

void Arrivals::Forget(uint32_t request) {
  MutexLock lock(mu_);
  if (waiting_.has_value() && waiting_->first == request) waiting_.reset();
}

std::optional<uint32_t> Arrivals::Take() {
  MutexLock lock(mu_);
  if (!waiting_.has_value()) return std::nullopt;
  return std::exchange(waiting_, std::nullopt)->first;
}

bool Arrivals::used() {
  MutexLock lock(mu_);
  return used_;
}

void Arrivals::Arrived(uint32_t tensors) {
  uint32_t request = 0;
  {
    MutexLock lock(mu_);
    there_ = tensors;
    if (!waiting_.has_value() || waiting_->second >= tensors) return;
    request = std::exchange(waiting_, std::nullopt)->first;
    told_ = std::max(told_, tensors);
  }
  answer_(request, tensors);
}

uint32_t Arrivals::Moved() {
  MutexLock lock(mu_);
  there_ = 0;
  return told_;
}

void Arrivals::MakeVoid() {
  MutexLock lock(mu_);
  void_ = true;
}

bool Arrivals::TakeVoid() {
  MutexLock lock(mu_);
  if (!void_) return false;
  void_ = false;
  told_ = 0;
  return true;
}

void Arrivals::Begun() {
  MutexLock lock(mu_);
  there_ = told_ = 0;
}

}  // namespace rubato::client
