#ifndef RUBATO_TESTS_SIMULATION_TRACE_H_
#define RUBATO_TESTS_SIMULATION_TRACE_H_

#include <deque>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/simulation/event_queue.h"

namespace rubato::simulation {

// The last lines of what happened, each with its virtual time. Costs nothing while it keeps none. Not thread-safe.
class Trace {
 public:
  // `queue` must outlive it.
  Trace(const EventQueue* queue, size_t keep) : queue_(queue), keep_(keep) {}

  template <typename... Args>
  void Add(const Args&... args) {
    if (keep_ == 0) return;
    const double seconds = absl::ToDoubleSeconds(queue_->Now() - absl::UnixEpoch());
    lines_.push_back(absl::StrCat(absl::Dec(static_cast<int64_t>(seconds * 1e6), absl::kSpacePad10), " us  ", args...));
    if (lines_.size() > keep_) lines_.pop_front();
  }
  bool on() const { return keep_ > 0; }
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  const EventQueue* const queue_;
  const size_t keep_;
  std::deque<std::string> lines_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_TRACE_H_
