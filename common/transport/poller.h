#ifndef RUBATO_COMMON_TRANSPORT_POLLER_H_
#define RUBATO_COMMON_TRANSPORT_POLLER_H_

#include <grpcpp/completion_queue.h>

#include <memory>
#include <thread>

#include "common/tsan.h"

namespace rubato {

// A completion queue of gRPC's, and the thread that takes its events. Calls share one: gRPC has one thread at a time
// wait for the sockets of all queues of a process, and after each event another thread that waits at a queue takes its
// turn, so that every further queue with a thread costs each event a switch of threads. Thread-safe.
class Poller {
 public:
  // How the end of an operation is heard of: its tag() is given to gRPC with the operation.
  class Event {
   public:
    void* tag() {
      TsanRelease(this);  // gRPC takes it from here.
      return this;
    }
    // The operation has ended. Called on the poller's thread, which must not be blocked.
    virtual void OnEvent(bool ok) = 0;

   protected:
    ~Event() = default;
  };

  explicit Poller(std::unique_ptr<grpc::CompletionQueue> queue);
  // Returns when the thread has ended, hence is not to be called on it. All events have come, and nobody starts
  // anything on the queue any more.
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // One that clients in this process share. There are as many as NumShared() says, of which each call returns the next:
  // messages are unpacked by these threads, and one of them is too few for a fast network. Ends with its last owner.
  static std::shared_ptr<Poller> Shared();
  // For a host with this many processors: 1 up to 15, then one for every eight, and 4 at the most.
  static unsigned NumShared(unsigned processors);

  grpc::CompletionQueue* queue() { return queue_.get(); }

 private:
  void Run();

  const std::unique_ptr<grpc::CompletionQueue> queue_;
  std::thread thread_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_TRANSPORT_POLLER_H_
