#ifndef RUBATO_CLIENT_SIDECAR_COORDINATOR_REQUESTS_H_
#define RUBATO_CLIENT_SIDECAR_COORDINATOR_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "client/link/frame.h"
#include "client/sidecar/answers.h"
#include "client/sidecar/coordinator_calls.h"
#include "client/sidecar/request_threads.h"
#include "common/log.h"
#include "common/mutex.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::client {

// What a client asks of the coordinator that has nothing to do with its steps: values, barriers, switches of the mode,
// checkpoints. Each request is answered when the coordinator has answered. Used by the reader's thread.
class CoordinatorRequests {
 public:
  // All outlive this object and the requests that it has begun.
  struct Options {
    CoordinatorCalls* calls = nullptr;
    Answers* answers = nullptr;
    RequestThreads* threads = nullptr;
    // Of the job, once the client has defined its model.
    const v1::JobConfig* config = nullptr;
    // This worker, now.
    std::function<v1::TaskId()> task;
    std::function<Logger()> make_logger;
  };

  explicit CoordinatorRequests(Options options) : options_(std::move(options)) {}

  void Put(const Frame& frame, bool erase);
  void Get(const Frame& frame);
  void Barrier(const Frame& frame);
  void Switch(const Frame& frame);
  // Answered at once.
  void Checkpoint(const Frame& frame);
  void AwaitCheckpoint(const Frame& frame);

 private:
  const Options options_;
  Mutex mu_;
  // By name: how often this worker came through the barrier.
  std::map<std::string, uint64_t> barrier_rounds_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_COORDINATOR_REQUESTS_H_
