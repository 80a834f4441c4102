#include "kernels/testing/deferred_backend.h"

#include <deque>
#include <utility>

#include "common/status.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/cpu_operations.h"

namespace rubato {

class DeferredBackend::Queue {
 public:
  explicit Queue(std::unique_ptr<Operations> operations)
      : host_(*CreateCpuBackend({})), operations_(std::move(operations)) {}

  Backend& host() { return *host_; }
  Operations& operations() { return *operations_; }
  int64_t enqueued() const { return done_ + static_cast<int64_t>(work_.size()); }
  int64_t done() const { return done_; }
  absl::Status Add(std::function<absl::Status()> work) {
    work_.push_back(std::move(work));
    return absl::OkStatus();
  }
  void Fail(absl::Status status) { status_ = std::move(status); }

  // Does the work up to a count. The first error stays, as on a device.
  absl::Status RunUntil(int64_t count) {
    while (done_ < count) {
      std::function<absl::Status()> work = std::move(work_.front());
      work_.pop_front();
      ++done_;
      if (status_.ok()) status_ = work();
    }
    return status_;
  }

 private:
  const std::unique_ptr<Backend> host_;
  const std::unique_ptr<Operations> operations_;
  std::deque<std::function<absl::Status()>> work_;
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

DeferredBackend::DeferredBackend(std::unique_ptr<Operations> operations)
    : queue_(std::make_shared<Queue>(operations != nullptr ? std::move(operations)
                                                           : std::make_unique<CpuOperations>(1))) {}
DeferredBackend::~DeferredBackend() = default;

absl::StatusOr<DeviceTensor> DeferredBackend::DoAllocate(Shape shape, ElementType type, int64_t) {
  return queue_->host().Allocate(std::move(shape), type);
}

absl::StatusOr<std::shared_ptr<void>> DeferredBackend::AllocateHost(int64_t bytes) {
  return queue_->host().AllocateHost(bytes);
}

absl::StatusOr<std::shared_ptr<void>> DeferredBackend::AllocateHostForSending(int64_t bytes) {
  return queue_->host().AllocateHostForSending(bytes);
}

absl::StatusOr<DeviceMemory> DeferredBackend::Memory() const { return queue_->host().Memory(); }

absl::Status DeferredBackend::DoCopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) {
  return queue_->Add([=, &host = queue_->host()] { return host.CopyToDevice(to, offset, count, from); });
}

absl::Status DeferredBackend::DoCopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) {
  return queue_->Add([=, &host = queue_->host()] { return host.CopyToHost(from, offset, count, to); });
}

absl::Status DeferredBackend::DoCopyFromPeer(Backend* peer, const DeviceTensor& x, const DeviceTensor& y) {
  auto* const from = static_cast<DeferredBackend*>(peer);
  // Each may go before the other. What is left of one that has gone is not done any more.
  const std::weak_ptr<Queue> theirs = from->queue_, mine = queue_;
  const auto run_until = [](const std::weak_ptr<Queue>& weak, int64_t count) {
    const std::shared_ptr<Queue> queue = weak.lock();
    return queue == nullptr ? absl::OkStatus() : queue->RunUntil(count);
  };
  RUBATO_RETURN_IF_ERROR(
      queue_->Add([=, before = from->queue_->enqueued(), &operations = queue_->operations()]() -> absl::Status {
        RUBATO_RETURN_IF_ERROR(run_until(theirs, before));
        return operations.Copy(x, y);
      }));
  return from->queue_->Add([=, copied = queue_->enqueued()] { return run_until(mine, copied); });
}

absl::Status DeferredBackend::Defer(std::function<absl::Status(Operations&)> operation) {
  return queue_->Add(
      [operation = std::move(operation), &operations = queue_->operations()] { return operation(operations); });
}

absl::StatusOr<std::unique_ptr<Event>> DeferredBackend::Record() {
  return std::make_unique<DeferredEvent<Queue>>(queue_);
}

absl::Status DeferredBackend::Synchronize() { return queue_->RunUntil(queue_->enqueued()); }

void DeferredBackend::FailWith(absl::Status status) { queue_->Fail(std::move(status)); }

}  // namespace rubato
