#include "tests/explorer/worker_actor.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "common/task.h"
#include "tests/explorer/coordinator_actor.h"
#include "tests/simulation/messages.h"

namespace rubato::explorer {

using worker::StepMachine;
using Request = worker::StepMachine::Request;

namespace {

constexpr uint64_t kExamples = 8;  // Of each step.

// Chunks of one partition, as many to a message as the scope says.
std::vector<simulation::ChunkGroup> GroupChunks(const v1::JobDescription& job, uint32_t most) {
  std::vector<simulation::ChunkGroup> groups;
  for (uint32_t chunk = 0; chunk < static_cast<uint32_t>(job.chunks_size()); ++chunk) {
    const v1::ChunkPlacement& place = job.chunks(static_cast<int>(chunk));
    auto has_room = [&](const simulation::ChunkGroup& group) {
      return group.server == place.server() && group.partition == place.partition() && group.chunks.size() < most;
    };
    auto group = std::find_if(groups.begin(), groups.end(), has_room);
    if (group == groups.end()) group = groups.insert(groups.end(), {place.server(), place.partition(), {}});
    group->chunks.push_back(chunk);
  }
  return groups;
}

}  // namespace

WorkerActor::WorkerActor(Model* model, uint32_t index, uint64_t term)
    : model_(model),
      link_(model, {.task = model->NewProcess(v1::TaskId::WORKER, index),
                    .actor = IdOf(Actor::kWorker, index),
                    .term = term,
                    .receiver = [this](const v1::Directive& directive) { OnDirective(directive); },
                    .on_new_session = [this] { OnNewSession(); }}),
      streams_(model->scope.servers, 0) {}

void WorkerActor::OnNewSession() {
  if (IsAwaited()) link_.Send(HeartbeatMessage());
  if (state_ == State::kDone && !model_->scope.stay) Leave();
}

void WorkerActor::OnDirective(const v1::Directive& directive) {
  if (directive.has_stop()) {
    // It has left, and the coordinator knows.
    if (state_ == State::kDone && !model_->scope.stay) return link_.Close();
    model_->oracle.Violate(absl::StrCat("I4: a living worker is stopped: ", directive.stop().error()));
  } else if (directive.has_keep_checkpoints()) {
    v1::Cut last;
    last.set_id(cut_.id());
    model_->checkpoints.Keep(task(), directive.keep_checkpoints(), last);
  } else if (directive.has_restart()) {
    Vanish();
    model_->start_again(task(), link_.term());
  } else if (directive.has_job()) {
    JoinJob(directive.job());
    MaybeStart(directive.job().plan());
  } else if (directive.has_commit()) {
    MaybeStart(directive.commit().plan());
  }
}

void WorkerActor::JoinJob(const v1::JobDescription& job) {
  if (job_ != 0) return;
  job_ = job.fingerprint();
  batches_ = GroupChunks(job, model_->scope.chunks_per_message);
  for (const v1::ServerInfo& server : job.servers()) servers_[server.task().index()] = server.task();
  if (!job.has_restore()) return;
  const auto* part = model_->checkpoints.Find(job.restore(), v1::TaskId::WORKER, task().index());
  if (part != nullptr) steps_ = part->steps;
}

ServerActor* WorkerActor::Reach(uint32_t server) const {
  ServerActor* process = model_->servers[server];
  auto known = servers_.find(server);
  const bool is_there = process->alive() && known != servers_.end() && SameTask(known->second, process->task());
  return is_there ? process : nullptr;
}

void WorkerActor::MaybeStart(const v1::Plan& plan) {
  if (batches_.empty() || machine_.has_value()) return;
  const bool member = std::any_of(plan.members().begin(), plan.members().end(),
                                  [this](const v1::TaskId& other) { return SameTask(other, task()); });
  if (!member) return;
  phase_ = Phase::kForward;
  machine_.emplace(static_cast<int>(batches_.size()), static_cast<StepMachine::Sink*>(this));
  machine_->Start(plan);
}

void WorkerActor::Send(const Request& request) {
  const simulation::ChunkGroup& batch = batches_[request.batch];
  ServerActor* server = Reach(batch.server);
  if (server == nullptr) return;
  server->ReceiveRequest(batch.partition, {StreamTo(batch.server), request.id,
                                           simulation::ToPartitionRequest(request, task(), batch.chunks, kExamples)});
}

void WorkerActor::ReceiveReply(const Stream& stream, uint64_t id, const v1::ExchangeReply& reply) {
  if (state_ != State::kRuns || !SameTask(stream.task, task()) || streams_[stream.server] != stream.number) return;
  Schedule::Event event;
  event.actor = link_.actor();
  event.content = FingerprintOf("reply", id, reply.SerializeAsString());
  event.tag = stream.Tag();
  event.label = model_->Label(TaskName(task()), " gets the answer to request ", id, ": ", reply);
  event.run = [this, id, reply] { OnReply(id, reply); };
  model_->schedule.Post(std::move(event));
}

void WorkerActor::OnReply(uint64_t id, const v1::ExchangeReply& reply) {
  if (state_ != State::kRuns || machine_->BatchOf(id) < 0) return;
  const absl::Status status = machine_->OnReply(id, reply);
  if (!status.ok()) {
    return model_->oracle.Violate(
        absl::StrCat("I4: ", TaskName(task()), ", which lives, is sent away: ", status.message()));
  }
  Advance();
}

void WorkerActor::Compute(uint64_t what, const char* name, void (WorkerActor::*then)()) {
  model_->schedule.Post({.actor = link_.actor(),
                         .content = FingerprintOf("compute", what),
                         .tag = OwnTag(),
                         .run = [this, then] { (this->*then)(); },
                         .label = model_->Label(TaskName(task()), name)});
}

void WorkerActor::Advance() {
  switch (phase_) {
    case Phase::kStarting:
      return;
    case Phase::kForward:
      if (machine_->moved()) {
        if (!std::exchange(restarts_, true))
          Compute(1, " asks again for the step that it was moved to", &WorkerActor::Restart);
        return;
      }
      if (!machine_->complete()) return;
      if (model_->scope.stay && machine_->step() >= model_->scope.steps) return End();
      return BeginStep();
    case Phase::kBackward:
      return;
    case Phase::kEnding:
      return End();
  }
}

void WorkerActor::Restart() {
  restarts_ = false;
  machine_->Restart();
  Advance();
}

void WorkerActor::BeginStep() {
  const std::pair<uint64_t, int64_t> next(machine_->generation(), machine_->step());
  const v1::Plan& plan = machine_->plan();
  model_->oracle.StepBegins(job_, task(), plan, last_, next);
  const bool entered = next.first != last_.first;
  last_ = next;
  if (entered && plan.has_cut()) EnterCut(plan.cut());
  if (entered) Heartbeat();
  machine_->BeginStep();
  phase_ = Phase::kBackward;
  to_push_ = static_cast<int>(batches_.size()) - 1;
  // Nothing can come before the first push: it waits for nobody.
  PushNext();
}

void WorkerActor::PushNext() {
  machine_->Push(to_push_--);
  if (to_push_ >= 0) return Compute(2, " pushes its next batch", &WorkerActor::PushNext);
  ++steps_;
  phase_ = !model_->scope.stay && steps_ >= model_->scope.steps ? Phase::kEnding : Phase::kForward;
  Advance();
}

void WorkerActor::EnterCut(const v1::Cut& cut) {
  cut_.Clear();
  cut_.set_id(cut.id());
  cut_.set_entered(true);
  model_->schedule.Post({.actor = link_.actor(),
                         .content = FingerprintOf("part", cut.id()),
                         .tag = OwnTag(),
                         .run = [this, cut] { WritePart(cut); },
                         .label = model_->Label(TaskName(task()), " has written its part of cut ", cut.id())});
}

void WorkerActor::WritePart(const v1::Cut& cut) {
  if (cut.id() != cut_.id()) return;
  model_->checkpoints.BeginWrite(task(), cut);
  model_->checkpoints.Write(task(), {.cut = cut, .steps = steps_});
  cut_.set_written(true);
  cut_.set_bytes(1);
  Heartbeat();
}

v1::TaskMessage WorkerActor::HeartbeatMessage() const {
  v1::TaskMessage message;
  v1::WorkerProgress* progress = message.mutable_heartbeat()->mutable_progress();
  progress->set_step(std::max<int64_t>(last_.second, 0));
  progress->set_generation(last_.first);
  *message.mutable_heartbeat()->mutable_cut() = cut_;
  return message;
}

bool WorkerActor::IsAwaited() const { return model_->scope.cut || model_->scope.switch_to.has_value(); }

void WorkerActor::Heartbeat() {
  const bool first = last_.first <= model_->coordinator->first_generation();
  if (!first || (IsAwaited() && model_->scope.MayForget())) return link_.Send(HeartbeatMessage());
  // Of the plan that the job begins with, one order is enough, and none if nobody waits for it.
  if (!model_->scope.MayForget()) link_.SendNow(HeartbeatMessage());
}

void WorkerActor::End() {
  if (machine_->open_pushes() > 0) return;
  if (last_.second >= 0) model_->oracle.StepAcknowledged(job_, task(), last_.second);
  state_ = State::kDone;
  if (model_->scope.stay) return;
  Leave();
  CloseStreams();
}

void WorkerActor::Leave() {
  v1::TaskMessage message;
  message.mutable_leaving();
  link_.Send(std::move(message));
  if (!model_->scope.MayForget()) link_.Close();
}

void WorkerActor::CloseStreams() {
  model_->schedule.Withdraw(OwnTag());
  for (uint32_t server = 0; server < streams_.size(); ++server) {
    const Stream stream = StreamTo(server);
    model_->schedule.Withdraw(stream.Tag(), link_.actor());
    ServerActor* process = Reach(server);
    if (state_ == State::kDead && process != nullptr) process->EndStream(stream);
  }
}

void WorkerActor::OfferFaults() {
  if (model_->scope.crash_worker) {
    model_->schedule.Post({.actor = link_.actor(),
                           .content = FingerprintOf("dies"),
                           .tag = TagOf(Once::kCrashWorker),
                           .run = [this] { Die(); },
                           .possible = [this] { return state_ == State::kRuns; },
                           .label = model_->Label(TaskName(task()), " dies")});
  }
  if (!model_->scope.break_stream) return;
  for (uint32_t server = 0; server < streams_.size(); ++server) {
    model_->schedule.Post({.actor = link_.actor(),
                           .content = FingerprintOf("breaks", uint64_t{server}),
                           .tag = TagOf(Once::kBreakStream),
                           .run = [this, server] { BreakStream(server); },
                           .possible = [this] { return state_ == State::kRuns && machine_.has_value(); },
                           .label = model_->Label(TaskName(task()), ": its stream to server ", server, " breaks")});
  }
}

void WorkerActor::Die() {
  model_->schedule.Withdraw(TagOf(Once::kCrashWorker));
  Vanish();
  model_->coordinator->AwaitLease(task());
}

void WorkerActor::Vanish() {
  state_ = State::kDead;
  link_.Close();
  CloseStreams();
}

void WorkerActor::BreakStream(uint32_t server) {
  model_->schedule.Withdraw(TagOf(Once::kBreakStream));
  const Stream broken = StreamTo(server);
  model_->schedule.Withdraw(broken.Tag(), link_.actor());
  if (ServerActor* process = Reach(server)) process->EndStream(broken);
  ++streams_[server];
  for (size_t batch = 0; batch < batches_.size(); ++batch) {
    if (batches_[batch].server == server) machine_->Resend(static_cast<int>(batch));
  }
}

void WorkerActor::AppendState(std::string* state) const {
  absl::StrAppend(state, static_cast<int>(state_), ",", static_cast<int>(phase_), ",", restarts_, ",", to_push_, ",",
                  steps_, ",", last_.first, ",", last_.second, ",", absl::StrJoin(streams_, "+"), ",",
                  cut_.SerializeAsString(), ",", link_.term(), ",", link_.closed(), ",", job_, ";");
  if (machine_.has_value()) machine_->AppendState(state);
}

std::string WorkerActor::Describe() const {
  std::string text = absl::StrCat(TaskName(task()), ": ");
  switch (state_) {
    case State::kDone:
      return absl::StrCat(text, "done");
    case State::kDead:
      return absl::StrCat(text, "dead");
    case State::kRuns:
      break;
  }
  absl::StrAppend(&text, steps_, " steps done; last began step ", last_.second, " of generation ", last_.first);
  if (machine_.has_value()) absl::StrAppend(&text, "; next is ", machine_->step(), " of ", machine_->generation());
  return text;
}

}  // namespace rubato::explorer
