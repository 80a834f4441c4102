#include "client/sidecar/sidecar.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/link/model.h"
#include "client/link/tensor_layout.h"
#include "client/sidecar/offer.h"
#include "client/sidecar/results.h"
#include "common/config/checkpoint_directory.h"
#include "common/random.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/task.h"
#include "worker/ps_client/snapshot_puller.h"

namespace rubato::client {
namespace {

// How often the reader looks whether the client lives: a process that it has forked may keep its socket open.
constexpr double kLookSeconds = 0.5;
// How long a client that was told of the end may take to go.
constexpr absl::Duration kAfterClose = absl::Seconds(10);

template <typename Body>
std::string Encode(const Body& body) {
  BodyWriter writer;
  writer.Put(body);
  return writer.body();
}

constexpr char kUnreadable[] = "the sidecar cannot read the request";

}  // namespace

Sidecar::Sidecar(Options options)
    : options_(options),
      channel_(options.descriptor),
      arrivals_([this](uint32_t request, uint32_t tensors) {
        Answer(request, RUBATO_OK, "", Encode(ArrivedBody{.tensors = tensors}));
      }),
      client_process_(getppid()) {}

void Sidecar::Run() {
  std::thread reader([this] { Read(); });
  if (AwaitStart()) {
    const absl::Status status = RunMembers();
    TellEnd(status);
    AwaitGone();
  }
  channel_.Shutdown();
  reader.join();
  requests_.CancelAll();
}

// ---- the reader's thread ----

bool Sidecar::ClientLives() const { return getppid() == client_process_; }

void Sidecar::Read() {
  for (;;) {
    Frame frame;
    std::string error;
    switch (channel_.Receive(&frame, kLookSeconds, &error)) {
      case Channel::Received::kFrame:
        OnFrame(frame);
        break;
      case Channel::Received::kNothing:
        if (!ClientLives()) return OnGone("has ended without rubato_close");
        break;
      case Channel::Received::kClosed:
        return OnGone("has ended without rubato_close");
      case Channel::Received::kBad:
        // The library reads the version of the answer, if nothing else.
        Answer(0, RUBATO_REFUSED, error);
        return OnGone(absl::StrCat("has sent what is no message: ", error));
    }
  }
}

void Sidecar::OnGone(const std::string& why) {
  requests_.CancelAll();
  MutexLock lock(mu_);
  gone_ = true;
  gave_up_ = absl::AbortedError(absl::StrCat("its client, process ", client_process_, ", ", why));
  if (member_ != nullptr && !close_request_.has_value()) member_->GiveUp(gave_up_);
  changed_.NotifyAll();
}

void Sidecar::OnFrame(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kOpen:
      return Open(frame);
    case FrameKind::kDefine:
      return Define(frame);
    case FrameKind::kStart:
      return Start(frame);
    case FrameKind::kAwait:
      return Await(frame);
    case FrameKind::kLease:
      return Lease(frame);
    case FrameKind::kPut:
      return Put(frame, /*erase=*/false);
    case FrameKind::kErase:
      return Put(frame, /*erase=*/true);
    case FrameKind::kGet:
      return Get(frame);
    case FrameKind::kBarrier:
      return Barrier(frame);
    case FrameKind::kSwitch:
      return Switch(frame);
    case FrameKind::kCheckpoint:
      return Checkpoint(frame);
    case FrameKind::kAwaitCheckpoint:
      return AwaitCheckpoint(frame);
    case FrameKind::kState:
      return TakeState(frame);
    case FrameKind::kFetchState:
      return FetchState(frame);
    case FrameKind::kClose:
      return Close(frame);
    case FrameKind::kForget: {
      uint32_t request = 0;
      if (BodyReader reader(frame.body); !reader.Get(&request)) return;
      requests_.Cancel(request);
      return arrivals_.Forget(request);
    }
    case FrameKind::kBegin: {
      MutexLock lock(mu_);
      if (end_.has_value()) return AnswerEnd(frame.request);
      return queue_.Push(frame);
    }
    case FrameKind::kHyperparameters:
    case FrameKind::kSlice:
    case FrameKind::kEpoch:
    case FrameKind::kPush:
    case FrameKind::kPushAbsent:
    case FrameKind::kSkip:
    case FrameKind::kReport:
    case FrameKind::kPause:
      return queue_.Push(frame);
    case FrameKind::kReply:
      return;
  }
}

void Sidecar::Open(const Frame& frame) {
  OpenBody open;
  BodyReader reader(frame.body);
  if (!reader.Get(&open) || !reader.Text(&coordinator_) || !reader.AtEnd()) {
    return Answer(frame.request, RUBATO_UNAVAILABLE, kUnreadable);
  }
  if (open.abi_version != RUBATO_ABI_VERSION) {
    return Answer(frame.request, RUBATO_REFUSED,
                  absl::StrCat("the library has version ", open.abi_version, " of the interface, and the sidecar ",
                               RUBATO_ABI_VERSION));
  }
  timeout_ = absl::Seconds(open.timeout_seconds);
  {
    MutexLock lock(mu_);
    task_.set_role(v1::TaskId::WORKER);
    task_.set_index(open.rank);
    task_.set_incarnation(SystemRandom64());
  }
  coordinator_calls_ = std::make_unique<CoordinatorCalls>(coordinator_, timeout_, options_.clock);
  requests_.Begin(frame.request, [this, request = frame.request](Cancellation* cancellation) {
    AnswerStatus(request, coordinator_calls_->AwaitReachable(cancellation));
  });
}

void Sidecar::Define(const Frame& frame) {
  FileDescriptor memory(channel_.TakePassed());
  Model model;
  TensorLayout layout;
  if (coordinator_calls_ == nullptr || defined_ || !memory.open() || !DecodeModel(frame.body, &model)) {
    return Answer(frame.request, RUBATO_UNAVAILABLE, kUnreadable);
  }
  if (const std::string error = MakeTensorLayout(model.tensors, &layout); !error.empty()) {
    return Answer(frame.request, RUBATO_INVALID, error);
  }
  // The library waits for the answer, so nothing else has to do with the model meanwhile.
  requests_.Begin(frame.request,
                  [this, request = frame.request, model = std::move(model), layout = std::move(layout),
                   memory = std::make_shared<FileDescriptor>(std::move(memory))](Cancellation* cancellation) {
                    OfferModel(request, model, layout, std::move(*memory), cancellation);
                  });
}

void Sidecar::OfferModel(uint32_t request, const Model& model, TensorLayout layout, FileDescriptor memory,
                         Cancellation* cancellation) {
  const v1::OfferModelRequest offer = MakeOffer(model, task());
  absl::StatusOr<v1::OfferModelReply> reply = coordinator_calls_->OfferModel(offer, cancellation);
  absl::Status status = reply.status();
  if (status.ok()) status = CheckConfig(reply->config(), offer);
  if (!status.ok()) return Answer(request, ResultOfOffer(status), status.message());
  absl::StatusOr<ModelSpec> spec = BuildModelSpec(reply->config().model());
  absl::StatusOr<std::unique_ptr<MappedTensors>> tensors = MappedTensors::Create(std::move(layout), std::move(memory));
  for (const absl::Status& failed : {spec.status(), tensors.status()}) {
    if (!failed.ok()) return Answer(request, RUBATO_FAILED, failed.message());
  }
  config_ = std::move(*reply->mutable_config());
  spec_ = *std::move(spec);
  tensors_ = *std::move(tensors);
  // The mean is an update without hyperparameters.
  const bool mean = config_.optimizer().algorithm() == v1::OptimizerConfig::MEAN;
  if (mean) calls_.groups.resize(model.groups.size());
  for (uint32_t group = 0; !mean && group < model.groups.size(); ++group) {
    calls_.groups.push_back(std::make_shared<const v1::GroupHyperparameters>(
        MakeGroup(group, model.groups[group], config_.optimizer().algorithm())));
  }
  for (const Model::Tensor& tensor : model.tensors) calls_.group_of_tensor.push_back(tensor.group);
  slots_ = SlotsOf(static_cast<rubato_algorithm>(model.algorithm));
  defined_ = true;
  {
    MutexLock lock(mu_);
    leases_ = config_.data().dispatch() != v1::DataConfig::OWN;
  }
  Answer(request, RUBATO_OK);
}

void Sidecar::Start(const Frame& frame) {
  {
    MutexLock lock(mu_);
    started_ = true;
    changed_.NotifyAll();
  }
  Answer(frame.request, RUBATO_OK);
}

void Sidecar::Await(const Frame& frame) {
  AwaitBody body;
  BodyReader reader(frame.body);
  if (!reader.Get(&body) || !reader.AtEnd()) return Answer(frame.request, RUBATO_UNAVAILABLE, kUnreadable);
  MutexLock lock(mu_);
  if (end_.has_value()) return AnswerEnd(frame.request);
  arrivals_.Want(frame.request, static_cast<uint32_t>(body.tensor));
}

void Sidecar::Lease(const Frame& frame) {
  MutexLock lock(mu_);
  if (!leases_) {
    return Answer(frame.request, RUBATO_INVALID, "the model has no leased data: leased_examples was 0");
  }
  if (end_.has_value()) return AnswerEnd(frame.request);
  lease_request_ = frame.request;
  if (member_ != nullptr) member_->WantLease(frame.request);
}

void Sidecar::Put(const Frame& frame, bool erase) {
  v1::PutValueRequest put;
  BodyReader reader(frame.body);
  if (!reader.Text(put.mutable_key()) || (!erase && !reader.Text(put.mutable_value())) || !reader.AtEnd()) {
    return Answer(frame.request, RUBATO_UNAVAILABLE, kUnreadable);
  }
  put.set_erase(erase);
  *put.mutable_task() = task();
  requests_.Begin(frame.request, [this, request = frame.request, put](Cancellation* cancellation) {
    AnswerStatus(request, coordinator_calls_->PutValue(put, cancellation));
  });
}

void Sidecar::Get(const Frame& frame) {
  v1::GetValueRequest get;
  BodyReader reader(frame.body);
  if (!reader.Text(get.mutable_key()) || !reader.AtEnd()) {
    return Answer(frame.request, RUBATO_UNAVAILABLE, kUnreadable);
  }
  *get.mutable_task() = task();
  requests_.Begin(frame.request, [this, request = frame.request, get](Cancellation* cancellation) {
    const absl::StatusOr<std::string> value = coordinator_calls_->GetValue(get, cancellation);
    if (!value.ok()) return AnswerStatus(request, value.status());
    Answer(request, RUBATO_OK, "", *value);
  });
}

void Sidecar::Barrier(const Frame& frame) {
  BarrierBody body;
  v1::BarrierRequest barrier;
  BodyReader reader(frame.body);
  if (!reader.Get(&body) || !reader.Text(barrier.mutable_name()) || !reader.AtEnd()) {
    return Answer(frame.request, RUBATO_UNAVAILABLE, kUnreadable);
  }
  barrier.set_count(body.count);
  *barrier.mutable_task() = task();
  {
    MutexLock lock(mu_);
    barrier.set_round(barrier_rounds_[barrier.name()] + 1);
  }
  requests_.Begin(frame.request, [this, request = frame.request, barrier](Cancellation* cancellation) {
    const absl::Status status = coordinator_calls_->AwaitBarrier(barrier, cancellation);
    if (status.ok()) {
      MutexLock lock(mu_);
      barrier_rounds_[barrier.name()] = barrier.round();
    }
    AnswerStatus(request, status);
  });
}

void Sidecar::Switch(const Frame& frame) {
  SwitchBody body;
  BodyReader reader(frame.body);
  if (!reader.Get(&body) || !reader.AtEnd()) return Answer(frame.request, RUBATO_UNAVAILABLE, kUnreadable);
  v1::SwitchModeRequest change;
  change.set_mode(static_cast<v1::Mode>(body.mode));
  change.set_staleness_bound(body.staleness_bound);
  change.set_quorum(body.quorum);
  change.set_learning_rate_scale(body.learning_rate_scale);
  requests_.Begin(frame.request, [this, request = frame.request, change](Cancellation* cancellation) {
    AnswerStatus(request, coordinator_calls_->SwitchMode(change, cancellation));
  });
}

void Sidecar::Checkpoint(const Frame& frame) {
  Answer(frame.request, RUBATO_OK);
  requests_.Begin(frame.request, [this](Cancellation* cancellation) {
    const absl::Status status = coordinator_calls_->WriteCheckpoint(cancellation).status();
    if (!status.ok() && !cancellation->cancelled()) {
      MakeLogger().Warning(absl::StrCat("the checkpoint that the client asked for: ", status.message()));
    }
  });
}

void Sidecar::AwaitCheckpoint(const Frame& frame) {
  requests_.Begin(frame.request, [this, request = frame.request](Cancellation* cancellation) {
    const absl::StatusOr<std::string> name = coordinator_calls_->WriteCheckpoint(cancellation);
    if (!name.ok()) return AnswerStatus(request, name.status());
    // The client may be elsewhere by now; this process is where it was started.
    const std::filesystem::path directory = std::filesystem::absolute(JoinPath(CheckpointDirectory(config_), *name));
    Answer(request, RUBATO_OK, "", directory.string());
  });
}

void Sidecar::TakeState(const Frame& frame) {
  StateBody body;
  std::string values;
  BodyReader reader(frame.body);
  {
    MutexLock lock(mu_);
    if (started_) return;
  }
  // The library has looked at everything, and waits for nothing.
  if (!defined_ || !reader.Get(&body) || !reader.Text(&values) || body.tensor >= spec_.tensors.size()) return;
  const auto elements = static_cast<size_t>(NumElements(spec_.tensors[body.tensor].shape));
  const size_t count = values.size() / sizeof(float);
  if (body.slot >= slots_ || body.begin > elements || count > elements - body.begin) return;
  if (state_.empty()) {
    const bool accumulates = config_.optimizer().algorithm() == v1::OptimizerConfig::ADAGRAD;
    const double first = accumulates ? config_.optimizer().initial_accumulator() : 0;
    state_ = worker::InitialState::Make(spec_, slots_, static_cast<float>(first));
  }
  std::memcpy(state_.slots[body.slot][body.tensor].data() + body.begin, values.data(), count * sizeof(float));
  state_.updates[body.tensor] = body.updates;
}

void Sidecar::FetchState(const Frame& frame) {
  FetchStateBody body;
  BodyReader reader(frame.body);
  if (!reader.Get(&body) || !reader.AtEnd()) return Answer(frame.request, RUBATO_UNAVAILABLE, kUnreadable);
  requests_.Begin(frame.request, [this, request = frame.request, body](Cancellation* cancellation) {
    const absl::StatusOr<std::string> updates = PullState(static_cast<uint32_t>(body.slot), cancellation);
    if (!updates.ok()) return AnswerStatus(request, updates.status());
    Answer(request, RUBATO_OK, "", *updates);
  });
}

absl::StatusOr<std::string> Sidecar::PullState(uint32_t slot, Cancellation* cancellation) {
  std::optional<v1::JobDescription> job;
  {
    MutexLock lock(mu_);
    if (member_ != nullptr) job = member_->job();
  }
  if (!job.has_value()) return absl::UnavailableError("optimizer state: this worker is in no plan now");
  worker::SnapshotPuller puller(*job, task(), static_cast<int64_t>(config_.cluster().message_bytes()));
  cancellation->Watch([&puller] { puller.Cancel(); });
  const absl::StatusOr<worker::SnapshotPuller::Snapshot> snapshot =
      puller.PullSlot(slot + 1, timeout_, [this](int tensor, int64_t offset, const void* data, int64_t count) {
        std::memcpy(tensors_->MutableGradient(tensor, offset), data, static_cast<size_t>(count) * sizeof(float));
      });
  cancellation->Watch(std::function<void()>());
  RUBATO_RETURN_IF_ERROR(Annotate(snapshot.status(), "optimizer state"));
  BodyWriter updates;
  for (int64_t count : snapshot->updates) updates.Put(count);
  return updates.body();
}

void Sidecar::Close(const Frame& frame) {
  MutexLock lock(mu_);
  close_request_ = frame.request;
  if (end_.has_value() || !started_) {
    const bool news = end_.has_value() && !end_->told && end_->result != RUBATO_ENDED;
    Answer(frame.request, news ? end_->result : RUBATO_OK, news ? end_->error : "");
  } else if (frame.body.empty()) {
    queue_.Close();
  } else {
    gave_up_ = absl::AbortedError(frame.body);
    if (member_ != nullptr) member_->GiveUp(gave_up_);
    queue_.Close();
  }
  changed_.NotifyAll();
}

// ---- the worker's thread ----

bool Sidecar::AwaitStart() {
  MutexLock lock(mu_);
  while (!started_ && !gone_) changed_.Wait(mu_);
  return started_ && !gone_;
}

Member::Options Sidecar::MemberOptions(Logger* log, uint64_t term, uint64_t rollbacks) {
  return {.config = &config_,
          .spec = &spec_,
          .task = task(),
          .coordinator = coordinator_,
          .term = term,
          .rollbacks = rollbacks,
          .memory = tensors_.get(),
          .state = &state_,
          .queue = &queue_,
          .calls = &calls_,
          .arrivals = &arrivals_,
          .slow_factor = options_.slow_factor,
          .health = &health_,
          .answer_begin = [this](uint32_t request, const StepBody& step) { AnswerBegin(request, step); },
          .answer_moved = [this](uint32_t request) { Answer(request, RUBATO_MOVED); },
          .answer_end = [this](uint32_t request) { Answer(request, RUBATO_ENDED); },
          .answer_lease = [this](uint32_t request, std::optional<LeaseBody> lease) { AnswerLease(request, lease); },
          .timeout = timeout_,
          .clock = options_.clock,
          .log = log};
}

absl::StatusOr<std::unique_ptr<TaskPage>> Sidecar::OpenPage(Logger* log) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<TaskPage> page, TaskPage::Create({.listen = options_.metrics_listen,
                                                                            .port = metrics_port_,
                                                                            .task = task(),
                                                                            .metrics =
                                                                                [this](MetricText* text) {
                                                                                  MutexLock lock(mu_);
                                                                                  if (member_ == nullptr) return;
                                                                                  member_->AddMetrics(text);
                                                                                },
                                                                            .health = &health_,
                                                                            .clock = options_.clock}));
  if (page == nullptr) return page;
  metrics_port_ = page->port();
  log->Info(absl::StrCat("shows its metrics on port ", page->port()));
  return page;
}

absl::Status Sidecar::RunMembers() {
  uint64_t term = 0;
  for (uint64_t rollbacks = 0;; ++rollbacks) {
    Logger log = MakeLogger();
    RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<TaskPage> page, OpenPage(&log));
    Member::Options options = MemberOptions(&log, term, rollbacks);
    if (page != nullptr) options.metrics_address = page->address();
    auto owned = std::make_unique<Member>(std::move(options));
    Member* const member = owned.get();
    {
      MutexLock lock(mu_);
      member_ = std::move(owned);
      if (!gave_up_.ok()) member_->GiveUp(gave_up_);
      if (lease_request_.has_value()) member_->WantLease(*lease_request_);
    }
    const absl::Status status = member->Run();
    {
      MutexLock lock(mu_);
      owned = std::move(member_);
      if (!gave_up_.ok() || !member->restarts()) return status;
      task_.set_incarnation(SystemRandom64());
    }
    term = member->term();
  }
}

void Sidecar::TellEnd(const absl::Status& status) {
  Logger log = MakeLogger();
  MutexLock lock(mu_);
  end_ = End{.result = ResultOfEnd(status), .error = std::string(status.ok() ? "" : status.message())};
  if (end_->result == RUBATO_ENDED) end_->error.clear();
  if (end_->result != RUBATO_ENDED && gave_up_.ok()) log.Error(status.message());
  if (calls_.begin.has_value()) AnswerEnd(*std::exchange(calls_.begin, std::nullopt));
  while (const std::optional<Frame> frame = queue_.Next(absl::ZeroDuration())) {
    if (frame->kind == FrameKind::kBegin) AnswerEnd(frame->request);
  }
  if (const std::optional<uint32_t> awaits = arrivals_.Take()) AnswerEnd(*awaits);
  if (lease_request_.has_value()) AnswerEnd(*std::exchange(lease_request_, std::nullopt));
  if (!close_request_.has_value()) return;
  // A client that closes because of an error of its own has done so.
  const bool failed = end_->result != RUBATO_ENDED && gave_up_.ok();
  Answer(*close_request_, failed ? end_->result : RUBATO_OK, failed ? end_->error : "");
}

void Sidecar::AwaitGone() {
  MutexLock lock(mu_);
  absl::Time closed_at = absl::InfiniteFuture();
  while (!gone_ && options_.clock->Now() - closed_at < kAfterClose) {
    changed_.WaitFor(mu_, absl::Milliseconds(200));
    if (close_request_.has_value() && closed_at == absl::InfiniteFuture()) closed_at = options_.clock->Now();
  }
}

// ---- answers ----

void Sidecar::Answer(uint32_t request, rubato_result result, absl::string_view error, absl::string_view body) {
  BodyWriter writer;
  writer.Put(ReplyBody{.result = result}).Text({error.data(), error.size()});
  std::string frame = writer.body();
  frame.append(body.data(), body.size());
  // If it cannot be sent, the client is gone, which the reader notices.
  channel_.Send(FrameKind::kReply, request, frame);
}

void Sidecar::AnswerStatus(uint32_t request, const absl::Status& status) {
  if (absl::IsCancelled(status)) return;  // Nobody waits for it.
  Answer(request, ResultOfRequest(status), status.message());
}

void Sidecar::AnswerEnd(uint32_t request) {
  end_->told = true;
  Answer(request, end_->result, end_->error);
}

void Sidecar::AnswerBegin(uint32_t request, const StepBody& step) { Answer(request, RUBATO_OK, "", Encode(step)); }

void Sidecar::AnswerLease(uint32_t request, const std::optional<LeaseBody>& lease) {
  {
    MutexLock lock(mu_);
    if (lease_request_ == request) lease_request_.reset();
  }
  if (lease.has_value()) {
    Answer(request, RUBATO_OK, "", Encode(*lease));
  } else {
    Answer(request, RUBATO_ENDED);
  }
}

v1::TaskId Sidecar::task() {
  MutexLock lock(mu_);
  return task_;
}

Logger Sidecar::MakeLogger() {
  const v1::TaskId id = task();
  const bool json = config_.observability().log_format() == v1::ObservabilityConfig::JSON;
  return Logger(
      TaskName(id), options_.clock,
      {.format = json ? LogFormat::kJson : LogFormat::kText, .incarnation = id.incarnation(), .quiet = options_.quiet});
}

}  // namespace rubato::client
