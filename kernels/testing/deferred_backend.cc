#include "kernels/testing/deferred_backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cpu/cpu_backend.h"

namespace rubato {

class DeferredBackend::Queue {
 public:
  Queue() : host_(*CreateCpuBackend({})) {}

  Backend& host() { return *host_; }
  int64_t enqueued() const { return done_ + static_cast<int64_t>(work_.size()); }
  int64_t done() const { return done_; }
  void Add(std::function<absl::Status(Backend&)> work) { work_.push_back(std::move(work)); }
  void Fail(absl::Status status) { status_ = std::move(status); }

  // Does the work up to a count. The first error stays, as on a device.
  absl::Status RunUntil(int64_t count) {
    while (done_ < count) {
      std::function<absl::Status(Backend&)> work = std::move(work_.front());
      work_.pop_front();
      ++done_;
      if (status_.ok()) status_ = work(*host_);
    }
    return status_;
  }

 private:
  const std::unique_ptr<Backend> host_;
  std::deque<std::function<absl::Status(Backend&)>> work_;
  int64_t done_ = 0;
  absl::Status status_;
};

namespace {

// Done when somebody has waited for it, or for something after it.
template <typename Queue>
class DeferredEvent : public Event {
 public:
  explicit DeferredEvent(std::shared_ptr<Queue> queue) : queue_(std::move(queue)), count_(queue_->enqueued()) {}

  bool Done() const override { return queue_->done() >= count_; }
  absl::Status Wait() const override { return queue_->RunUntil(count_); }

 private:
  const std::shared_ptr<Queue> queue_;
  const int64_t count_;
};

}  // namespace

DeferredBackend::DeferredBackend() : queue_(std::make_shared<Queue>()) {}
DeferredBackend::~DeferredBackend() = default;

absl::StatusOr<DeviceTensor> DeferredBackend::Allocate(Shape shape, ElementType type) {
  return queue_->host().Allocate(std::move(shape), type);
}

absl::StatusOr<std::shared_ptr<void>> DeferredBackend::AllocateHost(int64_t bytes) {
  return queue_->host().AllocateHost(bytes);
}

absl::StatusOr<std::shared_ptr<void>> DeferredBackend::AllocateHostForSending(int64_t bytes) {
  return queue_->host().AllocateHostForSending(bytes);
}

absl::StatusOr<DeviceMemory> DeferredBackend::Memory() const { return queue_->host().Memory(); }

absl::Status DeferredBackend::CopyFromPeer(Backend* peer, const DeviceTensor& x, const DeviceTensor& y) {
  auto* const from = dynamic_cast<DeferredBackend*>(peer);
  if (from == nullptr) return absl::InvalidArgumentError(absl::StrCat("CopyFromPeer: ", peer->Name(), " is no peer"));
  // Each may go before the other. What is left of one that has gone is not done any more.
  const std::weak_ptr<Queue> theirs = from->queue_, mine = queue_;
  const auto run_until = [](const std::weak_ptr<Queue>& weak, int64_t count) {
    const std::shared_ptr<Queue> queue = weak.lock();
    return queue == nullptr ? absl::OkStatus() : queue->RunUntil(count);
  };
  Enqueue([=, before = from->queue_->enqueued()](Backend& host) {
    RUBATO_RETURN_IF_ERROR(run_until(theirs, before));
    return host.Copy(x, y);
  });
  from->Enqueue([=, copied = queue_->enqueued()](Backend&) { return run_until(mine, copied); });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Event>> DeferredBackend::Record() {
  return std::make_unique<DeferredEvent<Queue>>(queue_);
}

absl::Status DeferredBackend::Synchronize() { return queue_->RunUntil(queue_->enqueued()); }

void DeferredBackend::FailWith(absl::Status status) { queue_->Fail(std::move(status)); }

void DeferredBackend::Enqueue(std::function<absl::Status(Backend&)> work) { queue_->Add(std::move(work)); }

}  // namespace rubato
