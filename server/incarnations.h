#ifndef RUBATO_SERVER_INCARNATIONS_H_
#define RUBATO_SERVER_INCARNATIONS_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/mutex.h"

namespace rubato::server {

// A task from its registration until it leaves, or is to start again.
class Incarnation {
 public:
  virtual ~Incarnation() = default;
  // Once. Returns when the task is over, or the coordinator wants a new incarnation. The status says why it was given
  // up.
  virtual absl::Status Run() = 0;
  // Whether Run() returned because the job goes back to a checkpoint: another incarnation is to register. Thread-safe.
  virtual bool restarts() = 0;
  // Ends Run() early, for good. Thread-safe.
  virtual void Cancel(absl::Status why) = 0;
};

// The incarnations of a task, one after another in one process.
//
//   Incarnations incarnations([&] { return std::make_unique<ServerTask>(NewOptions()); });
//   StopWatcher watcher([&](absl::string_view signal) { incarnations.Cancel(absl::AbortedError(signal)); });
//   absl::Status status = incarnations.Run();
class Incarnations {
 public:
  // `make` is called on Run()'s thread, when the incarnation before is gone.
  explicit Incarnations(std::function<std::unique_ptr<Incarnation>()> make) : make_(std::move(make)) {}

  // Once. Returns what the last one ended with.
  absl::Status Run();
  // Ends Run(), whichever incarnation there is, or is about to be. Thread-safe.
  void Cancel(absl::Status why);

 private:
  // Whether the incarnation may run.
  bool Begin(Incarnation* next);

  const std::function<std::unique_ptr<Incarnation>()> make_;
  Mutex mu_;
  // Null between two of them.
  Incarnation* current_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status why_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_INCARNATIONS_H_
