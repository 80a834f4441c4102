#include "tests/explorer/task_link.h"

#include <algorithm>

#include "tests/explorer/coordinator_actor.h"

namespace rubato::explorer {

TaskLink::TaskLink(Model* model, const v1::TaskId& task, uint64_t actor, Receiver receiver)
    : model_(model), task_(task), actor_(actor), receiver_(std::move(receiver)) {
  model_->coordinator->Attach(this);
  v1::TaskMessage message;
  v1::Register& info = *message.mutable_register_();
  info.set_protocol_version(kProtocolVersion);
  info.set_config_fingerprint(simulation::kConfigFingerprint);
  if (task_.role() == v1::TaskId::SERVER) info.set_address(":900");
  if (task_.role() == v1::TaskId::WORKER) info.set_train_examples(simulation::kTrainExamples);
  Send(std::move(message));
}

void TaskLink::Send(v1::TaskMessage message) {
  *message.mutable_task() = task_;
  message.set_term(term_);
  Schedule::Event event;
  event.actor = IdOf(Actor::kCoordinator);
  event.content = FingerprintOf("message", message.SerializeAsString());
  event.channel = task_.role() == v1::TaskId::WORKER ? to_coordinator() : 0;
  event.tag = to_coordinator();
  event.label = model_->Label("the coordinator hears ", TaskName(task_), ": ", message);
  event.run = [model = model_, message = std::move(message)] { model->coordinator->OnMessage(message); };
  model_->schedule.Post(std::move(event));
}

void TaskLink::SendNow(v1::TaskMessage message) {
  *message.mutable_task() = task_;
  message.set_term(term_);
  model_->coordinator->OnMessage(message);
}

void TaskLink::Receive(const v1::Directive& directive) {
  if (closed_) return;
  Schedule::Event event;
  event.actor = actor_;
  event.content = FingerprintOf("directive", directive.SerializeAsString());
  event.channel = event.tag = to_task();
  event.label = model_->Label(TaskName(task_), " is told ", directive);
  event.run = [this, directive] { ReceiveNow(directive); };
  model_->schedule.Post(std::move(event));
}

void TaskLink::ReceiveNow(const v1::Directive& directive) {
  if (closed_) return;
  term_ = std::max(term_, directive.term());
  receiver_(directive);
}

void TaskLink::Close() {
  closed_ = true;
  model_->schedule.Withdraw(to_task());
}

}  // namespace rubato::explorer
