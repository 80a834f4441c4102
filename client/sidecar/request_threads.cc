#include "client/sidecar/request_threads.h"

#include <utility>

namespace rubato::client {

void RequestThreads::Clear() {
  for (auto entry = requests_.begin(); entry != requests_.end();) {
    if (!entry->second->done) {
      ++entry;
      continue;
    }
    // It has set `done` as the last thing it does, so this does not wait.
    entry->second->thread.join();
    entry = requests_.erase(entry);
  }
}

void RequestThreads::Begin(uint32_t request, std::function<void(Cancellation* cancellation)> work) {
  MutexLock lock(mu_);
  Clear();
  if (closed_ || requests_.contains(request)) return;
  Request* const entry = (requests_[request] = std::make_unique<Request>()).get();
  entry->thread = std::thread([this, entry, work = std::move(work)] {
    work(&entry->cancellation);
    MutexLock lock(mu_);
    entry->done = true;
  });
}

void RequestThreads::Cancel(uint32_t request) {
  MutexLock lock(mu_);
  const auto entry = requests_.find(request);
  if (entry != requests_.end()) entry->second->cancellation.Cancel();
}

void RequestThreads::CancelAll() {
  std::map<uint32_t, std::unique_ptr<Request>> requests;
  {
    MutexLock lock(mu_);
    closed_ = true;
    requests.swap(requests_);
  }
  for (auto& [number, request] : requests) request->cancellation.Cancel();
  for (auto& [number, request] : requests) request->thread.join();
}

}  // namespace rubato::client
