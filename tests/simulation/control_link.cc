#include "tests/simulation/control_link.h"

#include <utility>

#include "tests/simulation/coordinator_host.h"

namespace rubato::simulation {
namespace {

constexpr absl::Duration kRetry = absl::Milliseconds(300);

}  // namespace

ControlLink::ControlLink(World* world, CoordinatorHost* host, const v1::TaskId& task, Receiver receiver)
    : world_(world), host_(host), task_(task), receiver_(std::move(receiver)) {
  host_->Attach(this);
}

void ControlLink::Connect() {
  if (closed_ || epoch_ != 0) return;
  v1::TaskMessage message;
  message.mutable_register_();
  Send(std::move(message));
  world_->queue.After(kRetry, [this, attempt = attempt_] {
    if (attempt == attempt_) Connect();
  });
}

void ControlLink::Send(v1::TaskMessage message) {
  if (closed_ || frozen_ || !host_->up()) return;
  // Only a registration opens a session; whatever else is said without one is lost.
  if (epoch_ != host_->epoch() && !message.has_register_()) return;
  *message.mutable_task() = task_;
  world_->network.Send(
      [this, epoch = host_->epoch(), message = std::move(message)] { host_->Deliver(epoch, message); });
}

void ControlLink::Broken() {
  epoch_ = 0;
  ++attempt_;
  Connect();
}

void ControlLink::Deliver(uint64_t epoch, const v1::Directive& directive) {
  if (closed_ || frozen_ || epoch < newest_epoch_) return;
  if (directive.has_registered() && host_->up() && epoch == host_->epoch()) newest_epoch_ = epoch_ = epoch;
  receiver_(directive);
}

}  // namespace rubato::simulation
