#include "server/work_queue.h"

#include <utility>

namespace rubato::server {

WorkQueue::WorkQueue(const Clock* clock, std::function<void(absl::Time)> on_tick)
    : clock_(clock), on_tick_(std::move(on_tick)), thread_([this] { Run(); }) {}

WorkQueue::~WorkQueue() { Stop(); }

void WorkQueue::Stop() {
  {
    MutexLock lock(mu_);
    stop_ = true;
  }
  wake_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void WorkQueue::Post(std::function<void()> work, std::optional<uint32_t> kind) {
  {
    MutexLock lock(mu_);
    work_.push_back({std::move(work), kind});
  }
  wake_.NotifyOne();
}

void WorkQueue::Run() {
  absl::Time next_tick = clock_->Now() + kTick;
  for (;;) {
    std::deque<Piece> batch;
    {
      MutexLock lock(mu_);
      busy_ = false;
      if (work_.empty() && !stop_) wake_.WaitFor(mu_, kTick);
      // Somebody else may be at work, who wakes this thread when that is done; others then wait their turn.
      wanted_ = true;
      while (busy_) wake_.Wait(mu_);
      wanted_ = false;
      if (stop_) return;
      batch.swap(work_);
      busy_ = true;
    }
    for (const Piece& piece : batch) {
      if (piece.kind.has_value()) ++more_[*piece.kind];
    }
    for (const Piece& piece : batch) {
      if (piece.kind.has_value()) --more_[*piece.kind];
      piece.work();
    }
    more_.clear();
    if (absl::Time now = clock_->Now(); now >= next_tick) {
      on_tick_(now);
      next_tick = now + kTick;
    }
  }
}

bool WorkQueue::TryBegin() {
  MutexLock lock(mu_);
  if (busy_ || wanted_ || !work_.empty() || stop_) return false;
  busy_ = true;
  return true;
}

void WorkQueue::End() {
  bool wake = false;
  {
    MutexLock lock(mu_);
    busy_ = false;
    wake = wanted_ || !work_.empty() || stop_;
  }
  if (wake) wake_.NotifyOne();
}

size_t WorkQueue::MoreOf(uint32_t kind) const {
  const auto found = more_.find(kind);
  return found == more_.end() ? 0 : found->second;
}

size_t WorkQueue::length() {
  MutexLock lock(mu_);
  return work_.size();
}

}  // namespace rubato::server
