#include "common/transport/poller.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/mutex.h"

namespace rubato {
namespace {

// Those that are shared, while somebody has them.
class SharedPollers {
 public:
  std::shared_ptr<Poller> Next() {
    MutexLock lock(mu_);
    std::weak_ptr<Poller>& slot = pollers_[next_++ % pollers_.size()];
    std::shared_ptr<Poller> poller = slot.lock();
    if (poller == nullptr) slot = poller = std::make_shared<Poller>(std::make_unique<grpc::CompletionQueue>());
    return poller;
  }

 private:
  Mutex mu_;
  std::vector<std::weak_ptr<Poller>> pollers_ ABSL_GUARDED_BY(mu_) =
      std::vector<std::weak_ptr<Poller>>(Poller::NumShared(std::thread::hardware_concurrency()));
  size_t next_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace

Poller::Poller(std::unique_ptr<grpc::CompletionQueue> queue) : queue_(std::move(queue)), thread_([this] { Run(); }) {}

Poller::~Poller() {
  queue_->Shutdown();
  thread_.join();
}

std::shared_ptr<Poller> Poller::Shared() {
  static auto* const pollers = new SharedPollers;
  return pollers->Next();
}

unsigned Poller::NumShared(unsigned processors) { return std::clamp(processors / 8, 1u, 4u); }

void Poller::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    TsanAcquire(tag);
    static_cast<Event*>(tag)->OnEvent(ok);
  }
}

}  // namespace rubato
