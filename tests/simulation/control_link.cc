#include "tests/simulation/control_link.h"

#include <algorithm>
#include <utility>

#include "common/task.h"
#include "tests/simulation/coordinator_host.h"
#include "tests/simulation/job.h"

namespace rubato::simulation {
namespace {

constexpr absl::Duration kRetry = absl::Milliseconds(300);
constexpr absl::Duration kRefresh = absl::Milliseconds(900);

}  // namespace

ControlLink::ControlLink(World* world, CoordinatorHost* host, const v1::TaskId& task, Receiver receiver)
    : world_(world), host_(host), task_(task), receiver_(std::move(receiver)) {
  host_->Attach(this);
}

void ControlLink::Connect() { Register(session_); }

void ControlLink::Register(uint64_t session) {
  if (closed_ || session != session_) return;
  SendRegister();
  world_->queue.After(epoch_ == 0 ? kRetry : kRefresh, [this, session] { Register(session); });
}

void ControlLink::RegisterDone(const v1::WorkerProgress& done) {
  done_ = done;
  SendRegister();
}

void ControlLink::SendRegister() {
  v1::TaskMessage message;
  v1::Register& info = *message.mutable_register_();
  info.set_protocol_version(kProtocolVersion);
  info.set_config_fingerprint(kConfigFingerprint);
  if (task_.role() == v1::TaskId::SERVER) info.set_address(":900");
  if (task_.role() == v1::TaskId::WORKER) info.set_train_examples(TrainExamples(world_->scenario));
  if (done_.has_value()) *info.mutable_done() = *done_;
  Send(std::move(message));
}

void ControlLink::Send(std::vector<v1::TaskMessage> messages) {
  if (closed_ || frozen_ || !host_->up()) return;
  // Only a registration opens a session; whatever else is said without one is lost.
  if (epoch_ != host_->epoch() && !messages.front().has_register_()) return;
  for (v1::TaskMessage& message : messages) {
    *message.mutable_task() = task_;
    message.set_term(term_);
  }
  world_->network.Send([this, epoch = host_->epoch(), messages = std::move(messages)] {
    for (const v1::TaskMessage& message : messages) host_->Deliver(epoch, message);
  });
}

void ControlLink::Broken() {
  epoch_ = 0;
  ++session_;
  Connect();
}

void ControlLink::Deliver(uint64_t epoch, uint64_t number, const v1::Directive& directive) {
  if (closed_ || frozen_ || epoch < newest_epoch_) return;
  if (directive.has_keep_checkpoints() && number < newest_) return;
  newest_ = std::max(newest_, number);
  if (directive.term() != 0 && directive.term() < term_) return;
  term_ = std::max(term_, directive.term());
  if (directive.has_registered() && host_->up() && epoch == host_->epoch()) newest_epoch_ = epoch_ = epoch;
  receiver_(directive);
}

}  // namespace rubato::simulation
