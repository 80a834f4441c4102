#ifndef RUBATO_KERNELS_TESTING_HANGING_BACKEND_H_
#define RUBATO_KERNELS_TESTING_HANGING_BACKEND_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

#include "kernels/testing/deferred_backend.h"

namespace rubato {

// A device that is lost: it answers so many calls of Synchronize, and whoever makes the next one hangs.
class HangingBackend : public DeferredBackend {
 public:
  // `wait` is called over and over by who hangs.
  explicit HangingBackend(
      int64_t answers, std::function<void()> wait = [] { std::this_thread::yield(); })
      : answers_(answers), wait_(std::move(wait)) {}

  // Whoever hangs gets Internal: in a test, threads have to end. By any thread.
  void GiveUp() { given_up_ = true; }

  absl::Status Synchronize() override {
    if (answers_-- > 0) return DeferredBackend::Synchronize();
    while (!given_up_) wait_();
    return absl::InternalError("given up");
  }

 private:
  int64_t answers_;
  const std::function<void()> wait_;
  std::atomic<bool> given_up_ = false;
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_TESTING_HANGING_BACKEND_H_
