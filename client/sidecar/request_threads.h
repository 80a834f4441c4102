#ifndef RUBATO_CLIENT_SIDECAR_REQUEST_THREADS_H_
#define RUBATO_CLIENT_SIDECAR_REQUEST_THREADS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "client/sidecar/coordinator_calls.h"
#include "common/mutex.h"

namespace rubato::client {

// Runs a client's requests to the coordinator, each on a thread of its own: they are few, and some wait. Thread-safe.
class RequestThreads {
 public:
  RequestThreads() = default;
  // Cancels all, and waits for them.
  ~RequestThreads() { CancelAll(); }
  RequestThreads(const RequestThreads&) = delete;
  RequestThreads& operator=(const RequestThreads&) = delete;

  // `work` answers the request. Nothing is begun after CancelAll.
  void Begin(uint32_t request, std::function<void(Cancellation* cancellation)> work);
  // Nobody waits for it any more.
  void Cancel(uint32_t request);
  void CancelAll();

 private:
  struct Request {
    Cancellation cancellation;
    bool done = false;
    std::thread thread;
  };

  // Those that are over.
  void Clear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::map<uint32_t, std::unique_ptr<Request>> requests_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_REQUEST_THREADS_H_
