#include "worker/ps_client/step_machine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/proto_enum.h"

namespace rubato::worker {

using Reply = v1::ExchangeReply;

StepMachine::StepMachine(int batches, Sink* sink) : sink_(sink), batches_(batches) {}

void StepMachine::Start(const v1::Plan& plan) {
  plan_ = plan;
  next_ = {plan.generation(), plan.first_step()};
  for (int batch = 0; batch < static_cast<int>(batches_.size()); ++batch) PullNext(batch);
}

void StepMachine::Ask(int batch, Kind kind, Point point) {
  Batch& state = batches_[batch];
  if (state.state == State::kHave) --have_;
  state.state = kind == Kind::kPull ? State::kPulling : State::kPushing;
  state.asked = point;
  state.open = ++asked_ * batches_.size() + batch;
  sink_->Send({state.open, batch, kind, point.generation, point.step});
}

void StepMachine::BeginStep() {
  current_ = next_;
  next_.step = current_.step + 1;
  have_ = 0;
  for (Batch& batch : batches_) batch.state = State::kWorking;
}

void StepMachine::Push(int batch) {
  Point point = current_;
  if (RUBATO_MUTANT(kPushesUnderNextPlan)) point.generation = next_.generation;
  Ask(batch, Kind::kPushPull, point);
}

void StepMachine::Restart() {
  moved_ = false;
  for (int batch = 0; batch < static_cast<int>(batches_.size()); ++batch) {
    if (batches_[batch].state == State::kStale) PullNext(batch);
  }
}

int StepMachine::BatchOf(uint64_t id) const {
  if (id == 0 || batches_.empty()) return -1;
  const uint64_t batch = id % batches_.size();
  return batches_[batch].open == id ? static_cast<int>(batch) : -1;
}

void StepMachine::MoveTo(Point point, const v1::Plan& plan) {
  if (point <= next_) return;
  next_ = point;
  plan_ = plan;
  moved_ = true;
  if (RUBATO_MUTANT(kKeepsAbandonedWeights)) return;
  for (Batch& batch : batches_) {
    if (batch.state != State::kHave) continue;
    batch.state = State::kStale;
    --have_;
  }
}

void StepMachine::Arrived(int batch) {
  batches_[batch].open = 0;
  batches_[batch].state = State::kHave;
  ++have_;
}

absl::Status StepMachine::OnReply(uint64_t id, const Reply& reply) {
  const int batch = BatchOf(id);
  if (batch < 0) return absl::OkStatus();
  const bool pushing = batches_[batch].state == State::kPushing;
  const Point asked = batches_[batch].asked;
  const Point begun = pushing ? Point{asked.generation, asked.step + 1} : asked;
  switch (reply.outcome()) {
    case Reply::OK:
      if (begun == next_ || RUBATO_MUTANT(kIgnoresMoveInFlight)) {
        Arrived(batch);
      } else {  // The step was moved while the answer was in flight.
        PullNext(batch);
      }
      return absl::OkStatus();
    case Reply::MOVED:
      MoveTo({reply.plan().generation(), reply.next_step()}, reply.plan());
      PullNext(batch);
      return absl::OkStatus();
    case Reply::WAITING:
      if (pushing && reply.push() == Reply::PUSH_PENDING && !RUBATO_MUTANT(kPendingPushForgotten)) {
        Ask(batch, Kind::kPushPull, asked);
      } else {
        // The push is done; what is left is the start.
        Ask(batch, Kind::kPull, std::max(begun, next_));
      }
      return absl::OkStatus();
    case Reply::NOT_A_MEMBER:
      return absl::AbortedError(reply.message());
    // LATE is for snapshots; with it, and with what a newer server says, there is no going on either.
    case Reply::REFUSED:
    case Reply::LATE:
    case Reply::OUTCOME_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::ExchangeReply_Outcome_ExchangeReply_Outcome) : break;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("step ", asked.step, ", generation ", asked.generation, ": ", reply.message()));
}

void StepMachine::Resend(int batch) {
  const Batch& state = batches_[batch];
  if (state.open == 0) return;
  if (RUBATO_MUTANT(kResendForgetsPush)) return PullNext(batch);
  const Point point = RUBATO_MUTANT(kResendsAsNextStep) ? next_ : state.asked;
  Ask(batch, state.state == State::kPulling ? Kind::kPull : Kind::kPushPull, point);
}

int StepMachine::open_pushes() const {
  return static_cast<int>(std::count_if(batches_.begin(), batches_.end(),
                                        [](const Batch& batch) { return batch.state == State::kPushing; }));
}

void StepMachine::AppendState(std::string* state) const {
  for (const Batch& batch : batches_) {
    absl::StrAppend(state, static_cast<int>(batch.state), ",", batch.asked.generation, ",", batch.asked.step, ",",
                    batch.open, ";");
  }
  absl::StrAppend(state, plan_.SerializeAsString(), ";", current_.generation, ",", current_.step, ";", next_.generation,
                  ",", next_.step, ";", have_, ",", moved_, ",", asked_, ";");
}

}  // namespace rubato::worker
