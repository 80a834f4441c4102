#ifndef RUBATO_SERVER_GATHER_H_
#define RUBATO_SERVER_GATHER_H_

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"

namespace rubato::server {

// Runs `done` with everybody's result when the last of `count` has come, on the thread that brings it. Thread-safe.
template <typename T>
class Gather {
 public:
  Gather(size_t count, std::function<void(std::vector<T>)> done) : missing_(count), done_(std::move(done)) {}

  void Add(T value) {
    std::vector<T> all;
    {
      MutexLock lock(mu_);
      values_.push_back(std::move(value));
      if (--missing_ > 0) return;
      all = std::move(values_);
    }
    done_(std::move(all));
  }

 private:
  Mutex mu_;
  size_t missing_ ABSL_GUARDED_BY(mu_);
  std::vector<T> values_ ABSL_GUARDED_BY(mu_);
  const std::function<void(std::vector<T>)> done_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_GATHER_H_
