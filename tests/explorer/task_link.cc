#include "tests/explorer/task_link.h"

#include <algorithm>

#include "tests/explorer/coordinator_actor.h"

namespace rubato::explorer {

TaskLink::TaskLink(Model* model, Options options)
    : model_(model), options_(std::move(options)), session_(model->coordinator->session()), term_(options_.term) {
  model_->coordinator->Attach(this);
  Register();
}

void TaskLink::Register() {
  v1::TaskMessage message;
  v1::Register& info = *message.mutable_register_();
  info.set_protocol_version(kProtocolVersion);
  info.set_config_fingerprint(simulation::kConfigFingerprint);
  if (task().role() == v1::TaskId::SERVER) info.set_address(":900");
  if (task().role() == v1::TaskId::WORKER) info.set_train_examples(simulation::kManyExamples);
  Send(std::move(message));
}

void TaskLink::Send(v1::TaskMessage message) {
  if (closed_ || session_ != model_->coordinator->session()) return;
  *message.mutable_task() = task();
  message.set_term(term_);
  Schedule::Event event;
  event.actor = IdOf(Actor::kCoordinator);
  event.content = FingerprintOf("message", message.SerializeAsString());
  event.channel = task().role() == v1::TaskId::WORKER ? to_coordinator() : 0;
  event.tag = to_coordinator();
  event.label = model_->Label("the coordinator hears ", TaskName(task()), ": ", message);
  event.possible = [coordinator = model_->coordinator, first = message.has_register_(), id = task().incarnation()] {
    return first || coordinator->HasSessionOf(id);
  };
  event.run = [model = model_, message = std::move(message)] { model->coordinator->OnMessage(message); };
  model_->schedule.Post(std::move(event));
}

void TaskLink::SendNow(v1::TaskMessage message) {
  *message.mutable_task() = task();
  message.set_term(term_);
  model_->coordinator->OnMessage(message);
}

void TaskLink::Receive(const v1::Directive& directive) {
  if (closed_) return;
  Schedule::Event event;
  event.actor = actor();
  event.content = FingerprintOf("directive", directive.SerializeAsString());
  event.channel = event.tag = to_task();
  event.label = model_->Label(TaskName(task()), " is told ", directive);
  event.run = [this, directive] {
    term_ = std::max(term_, directive.term());
    ReceiveNow(directive);
  };
  model_->schedule.Post(std::move(event));
}

void TaskLink::ReceiveNow(const v1::Directive& directive) {
  if (!closed_) options_.receiver(directive);
}

void TaskLink::ReceiveFarewell() {
  if (closed_) return;
  model_->schedule.Post({.actor = actor(),
                         .content = FingerprintOf("farewell"),
                         .channel = to_task(),
                         .tag = to_task(),
                         .run = [this] { Close(); },
                         .label = model_->Label(TaskName(task()), " knows that it may go")});
}

void TaskLink::EndSession(uint64_t session, uint64_t term) {
  model_->schedule.Withdraw(to_coordinator());
  if (closed_) return;
  model_->schedule.Post({.actor = actor(),
                         .content = FingerprintOf("session", session),
                         .tag = to_task(),
                         .run = [this, session, term] { BeginSession(session, term); },
                         .label = model_->Label(TaskName(task()), " notices that its session has ended"),
                         .also = options_.threads});
}

void TaskLink::BeginSession(uint64_t session, uint64_t term) {
  model_->schedule.Withdraw(to_task());
  session_ = session;
  Register();
  // It will be told, and until then nobody minds which one it names.
  term_ = std::max(term_, term);
  options_.on_new_session();
}

void TaskLink::Close() {
  closed_ = true;
  model_->schedule.Withdraw(to_task());
}

}  // namespace rubato::explorer
