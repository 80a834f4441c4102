#include "client/sidecar/coordinator_requests.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/config/checkpoint_directory.h"
#include "common/storage/file.h"

namespace rubato::client {

void CoordinatorRequests::Put(const Frame& frame, bool erase) {
  v1::PutValueRequest put;
  BodyReader reader(frame.body);
  if (!reader.Text(put.mutable_key()) || (!erase && !reader.Text(put.mutable_value())) || !reader.AtEnd()) {
    return options_.answers->SendUnreadable(frame.request);
  }
  put.set_erase(erase);
  *put.mutable_task() = options_.task();
  options_.threads->Begin(frame.request, [this, request = frame.request, put](Cancellation* cancellation) {
    options_.answers->SendStatus(request, options_.calls->PutValue(put, cancellation));
  });
}

void CoordinatorRequests::Get(const Frame& frame) {
  v1::GetValueRequest get;
  BodyReader reader(frame.body);
  if (!reader.Text(get.mutable_key()) || !reader.AtEnd()) return options_.answers->SendUnreadable(frame.request);
  *get.mutable_task() = options_.task();
  options_.threads->Begin(frame.request, [this, request = frame.request, get](Cancellation* cancellation) {
    const absl::StatusOr<std::string> value = options_.calls->GetValue(get, cancellation);
    if (!value.ok()) return options_.answers->SendStatus(request, value.status());
    options_.answers->Send(request, RUBATO_OK, "", *value);
  });
}

void CoordinatorRequests::Barrier(const Frame& frame) {
  BarrierBody body;
  v1::BarrierRequest barrier;
  BodyReader reader(frame.body);
  if (!reader.Get(&body) || !reader.Text(barrier.mutable_name()) || !reader.AtEnd()) {
    return options_.answers->SendUnreadable(frame.request);
  }
  barrier.set_count(body.count);
  *barrier.mutable_task() = options_.task();
  {
    MutexLock lock(mu_);
    barrier.set_round(barrier_rounds_[barrier.name()] + 1);
  }
  options_.threads->Begin(frame.request, [this, request = frame.request, barrier](Cancellation* cancellation) {
    const absl::Status status = options_.calls->AwaitBarrier(barrier, cancellation);
    if (status.ok()) {
      MutexLock lock(mu_);
      barrier_rounds_[barrier.name()] = barrier.round();
    }
    options_.answers->SendStatus(request, status);
  });
}

void CoordinatorRequests::Switch(const Frame& frame) {
  SwitchBody body;
  BodyReader reader(frame.body);
  if (!reader.Get(&body) || !reader.AtEnd()) return options_.answers->SendUnreadable(frame.request);
  v1::SwitchModeRequest change;
  change.set_mode(static_cast<v1::Mode>(body.mode));
  change.set_staleness_bound(body.staleness_bound);
  change.set_quorum(body.quorum);
  change.set_learning_rate_scale(body.learning_rate_scale);
  options_.threads->Begin(frame.request, [this, request = frame.request, change](Cancellation* cancellation) {
    options_.answers->SendStatus(request, options_.calls->SwitchMode(change, cancellation));
  });
}

void CoordinatorRequests::Checkpoint(const Frame& frame) {
  options_.answers->Send(frame.request, RUBATO_OK);
  options_.threads->Begin(frame.request, [this](Cancellation* cancellation) {
    const absl::Status status = options_.calls->WriteCheckpoint(cancellation).status();
    if (!status.ok() && !cancellation->cancelled()) {
      options_.make_logger().Warning(absl::StrCat("the checkpoint that the client asked for: ", status.message()));
    }
  });
}

void CoordinatorRequests::AwaitCheckpoint(const Frame& frame) {
  options_.threads->Begin(frame.request, [this, request = frame.request](Cancellation* cancellation) {
    const absl::StatusOr<std::string> name = options_.calls->WriteCheckpoint(cancellation);
    if (!name.ok()) return options_.answers->SendStatus(request, name.status());
    // The client may be elsewhere by now; this process is where it was started.
    const std::filesystem::path directory =
        std::filesystem::absolute(JoinPath(CheckpointDirectory(*options_.config), *name));
    options_.answers->Send(request, RUBATO_OK, "", directory.string());
  });
}

}  // namespace rubato::client
