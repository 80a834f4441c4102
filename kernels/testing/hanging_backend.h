#ifndef RUBATO_KERNELS_TESTING_HANGING_BACKEND_H_
#define RUBATO_KERNELS_TESTING_HANGING_BACKEND_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "common/status.h"
#include "kernels/testing/deferred_backend.h"

namespace rubato {

// A device that is lost: it answers those who wait for it, with Synchronize or for an event that is not done, so many
// times, and whoever waits next hangs.
class HangingBackend : public DeferredBackend {
 public:
  // `wait` is called over and over by who hangs.
  explicit HangingBackend(
      int64_t answers, std::function<void()> wait = [] { std::this_thread::yield(); })
      : answers_(answers), wait_(std::move(wait)) {}

  // Whoever hangs gets Internal: in a test, threads have to end. By any thread.
  void GiveUp() { given_up_ = true; }

  absl::Status Synchronize() override {
    RUBATO_RETURN_IF_ERROR(Answer());
    return DeferredBackend::Synchronize();
  }
  absl::StatusOr<std::unique_ptr<Event>> Record() override {
    RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<Event> event, DeferredBackend::Record());
    return std::make_unique<HangingEvent>(this, std::move(event));
  }

 private:
  class HangingEvent : public Event {
   public:
    HangingEvent(HangingBackend* backend, std::unique_ptr<Event> event) : backend_(backend), event_(std::move(event)) {}
    bool Done() const override { return event_->Done(); }
    absl::Status Wait() const override {
      if (!event_->Done()) RUBATO_RETURN_IF_ERROR(backend_->Answer());
      return event_->Wait();
    }

   private:
    HangingBackend* const backend_;
    const std::unique_ptr<Event> event_;
  };

  absl::Status Answer() {
    if (answers_-- > 0) return absl::OkStatus();
    while (!given_up_) wait_();
    return absl::InternalError("given up");
  }

  int64_t answers_;
  const std::function<void()> wait_;
  std::atomic<bool> given_up_ = false;
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_TESTING_HANGING_BACKEND_H_
