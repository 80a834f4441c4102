#include "client/sidecar/sidecar.h"

#include <unistd.h>

#include <cstring>
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
#include "common/random.h"
#include "common/security/metrics_token.h"
#include "common/security/open_security.h"
#include "common/status.h"
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

}  // namespace

Sidecar::Sidecar(Options options)
    : options_(options),
      channel_(options.descriptor),
      answers_(&channel_),
      arrivals_([this](uint32_t request, uint32_t tensors) {
        answers_.Send(request, RUBATO_OK, "", Encode(ArrivedBody{.tensors = tensors}));
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
        answers_.Send(0, RUBATO_REFUSED, error);
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
  if (coordinator_calls_ == nullptr && frame.kind != FrameKind::kOpen) return answers_.SendUnreadable(frame.request);
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
      return coordinator_requests_->Put(frame, /*erase=*/false);
    case FrameKind::kErase:
      return coordinator_requests_->Put(frame, /*erase=*/true);
    case FrameKind::kGet:
      return coordinator_requests_->Get(frame);
    case FrameKind::kBarrier:
      return coordinator_requests_->Barrier(frame);
    case FrameKind::kSwitch:
      return coordinator_requests_->Switch(frame);
    case FrameKind::kCheckpoint:
      return coordinator_requests_->Checkpoint(frame);
    case FrameKind::kAwaitCheckpoint:
      return coordinator_requests_->AwaitCheckpoint(frame);
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
    case FrameKind::kBegin:
    case FrameKind::kHasWeights:
    case FrameKind::kReadRows: {
      MutexLock lock(mu_);
      if (end_.has_value()) return AnswerEnd(frame.request);
      queue_.Push(frame);
      if (keep_weights_ && frame.kind == FrameKind::kBegin && member_ != nullptr) member_->OnClientBegins();
      return;
    }
    case FrameKind::kHyperparameters:
    case FrameKind::kSlice:
    case FrameKind::kEpoch:
    case FrameKind::kPush:
    case FrameKind::kPushAbsent:
    case FrameKind::kSkip:
    case FrameKind::kReport:
    case FrameKind::kPause:
    case FrameKind::kAskRows:
    case FrameKind::kPushRows:
      return queue_.Push(frame);
    case FrameKind::kReply:
      return;
  }
}

void Sidecar::Open(const Frame& frame) {
  OpenBody open;
  BodyReader reader(frame.body);
  if (!reader.Get(&open) || !reader.Text(&coordinator_) || !reader.AtEnd()) {
    return answers_.SendUnreadable(frame.request);
  }
  if (open.abi_version != RUBATO_ABI_VERSION) {
    return answers_.Send(frame.request, RUBATO_REFUSED,
                         absl::StrCat("the library has version ", open.abi_version,
                                      " of the interface, and the sidecar ", RUBATO_ABI_VERSION));
  }
  absl::StatusOr<std::shared_ptr<const TaskSecurity>> security =
      OpenFolderSecurity(options_.credentials, Party::kWorker, open.rank, options_.clock->Now());
  absl::Status allowed = security.status();
  if (allowed.ok() && *security != nullptr) allowed = (*security)->CheckAddress("options.coordinator", coordinator_);
  if (!allowed.ok()) return answers_.Send(frame.request, RUBATO_REFUSED, allowed.message());
  security_ = *std::move(security);
  timeout_ = absl::Seconds(open.timeout_seconds);
  {
    MutexLock lock(mu_);
    task_.set_role(v1::TaskId::WORKER);
    task_.set_index(open.rank);
    task_.set_incarnation(SystemRandom64());
  }
  coordinator_calls_ = std::make_unique<CoordinatorCalls>(coordinator_, security_.get(), timeout_, options_.clock);
  coordinator_requests_ = std::make_unique<CoordinatorRequests>(
      CoordinatorRequests::Options{.calls = coordinator_calls_.get(),
                                   .answers = &answers_,
                                   .threads = &requests_,
                                   .config = &config_,
                                   .task = [this] { return task(); },
                                   .make_logger = [this] { return MakeLogger(); }});
  requests_.Begin(frame.request, [this, request = frame.request](Cancellation* cancellation) {
    answers_.SendStatus(request, coordinator_calls_->AwaitReachable(cancellation));
  });
}

void Sidecar::Define(const Frame& frame) {
  FileDescriptor memory(channel_.TakePassed());
  Model model;
  TensorLayout layout;
  if (defined_ || !memory.open() || !DecodeModel(frame.body, &model)) {
    return answers_.SendUnreadable(frame.request);
  }
  if (const std::string error = MakeTensorLayout(model.tensors, &layout); !error.empty()) {
    return answers_.Send(frame.request, RUBATO_INVALID, error);
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
  if (!status.ok()) return answers_.Send(request, ResultOfOffer(status), status.message());
  absl::StatusOr<ModelSpec> spec = BuildModelSpec(reply->config().model());
  absl::StatusOr<std::unique_ptr<MappedTensors>> tensors = MappedTensors::Create(std::move(layout), std::move(memory));
  for (const absl::Status& failed : {spec.status(), tensors.status()}) {
    if (!failed.ok()) return answers_.Send(request, RUBATO_FAILED, failed.message());
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
  keep_weights_ = model.keep_weights;
  slots_ = SlotsOf(static_cast<rubato_algorithm>(model.algorithm));
  defined_ = true;
  {
    MutexLock lock(mu_);
    leases_ = config_.data().dispatch() != v1::DataConfig::OWN;
  }
  answers_.Send(request, RUBATO_OK);
}

void Sidecar::Start(const Frame& frame) {
  {
    MutexLock lock(mu_);
    started_ = true;
    changed_.NotifyAll();
  }
  answers_.Send(frame.request, RUBATO_OK);
}

void Sidecar::Await(const Frame& frame) {
  AwaitBody body;
  BodyReader reader(frame.body);
  if (!reader.Get(&body) || !reader.AtEnd()) return answers_.SendUnreadable(frame.request);
  MutexLock lock(mu_);
  if (end_.has_value()) return AnswerEnd(frame.request);
  arrivals_.Want(frame.request, static_cast<uint32_t>(body.tensor));
}

void Sidecar::Lease(const Frame& frame) {
  MutexLock lock(mu_);
  if (!leases_) {
    return answers_.Send(frame.request, RUBATO_INVALID, "the model has no leased data: leased_examples was 0");
  }
  if (end_.has_value()) return AnswerEnd(frame.request);
  lease_request_ = frame.request;
  if (member_ != nullptr) member_->WantLease(frame.request);
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
  if (!reader.Get(&body) || !reader.AtEnd()) return answers_.SendUnreadable(frame.request);
  requests_.Begin(frame.request, [this, request = frame.request, body](Cancellation* cancellation) {
    const absl::StatusOr<std::string> updates = PullState(static_cast<uint32_t>(body.slot), cancellation);
    if (!updates.ok()) return answers_.SendStatus(request, updates.status());
    answers_.Send(request, RUBATO_OK, "", *updates);
  });
}

absl::StatusOr<std::string> Sidecar::PullState(uint32_t slot, Cancellation* cancellation) {
  std::optional<v1::JobDescription> job;
  {
    MutexLock lock(mu_);
    if (member_ != nullptr) job = member_->job();
  }
  if (!job.has_value()) return absl::UnavailableError("optimizer state: this worker is in no plan now");
  worker::SnapshotPuller puller(*job, task(), security_.get(), static_cast<int64_t>(config_.cluster().message_bytes()));
  cancellation->Watch([&puller] { puller.Cancel(); });
  const absl::StatusOr<worker::SnapshotPuller::Snapshot> snapshot =
      puller.PullSlot(slot + 1, timeout_, [this](int tensor, int64_t offset, const void* data, int64_t count) {
        std::memcpy(tensors_->Gradient(tensor, offset), data, static_cast<size_t>(count) * sizeof(float));
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
    answers_.Send(frame.request, news ? end_->result : RUBATO_OK, news ? end_->error : "");
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
  return {
      .config = &config_,
      .spec = &spec_,
      .task = task(),
      .security = security_,
      .coordinator = coordinator_,
      .term = term,
      .rollbacks = rollbacks,
      .memory = tensors_.get(),
      .state = &state_,
      .queue = &queue_,
      .calls = &calls_,
      .arrivals = &arrivals_,
      .keep_weights = keep_weights_,
      .slow = options_.slow,
      .network = options_.network,
      .health = &health_,
      .answer_begin = [this](uint32_t request, const StepBody& step,
                             const std::string& rows) { AnswerBegin(request, step, rows); },
      .answer_moved = [this](uint32_t request) { answers_.Send(request, RUBATO_MOVED); },
      .answer_end = [this](uint32_t request) { answers_.Send(request, RUBATO_ENDED); },
      .answer_has_weights = [this](uint32_t request,
                                   int64_t has) { answers_.Send(request, RUBATO_OK, "", Encode(has)); },
      .answer_rows = [this](uint32_t request, const std::string& rows) { answers_.Send(request, RUBATO_OK, "", rows); },
      .answer_lease = [this](uint32_t request, std::optional<LeaseBody> lease) { AnswerLease(request, lease); },
      .timeout = timeout_,
      .clock = options_.clock,
      .log = log};
}

absl::StatusOr<std::unique_ptr<TaskPage>> Sidecar::OpenPage(Logger* log) {
  TaskPage::Options options;
  options.listen = options_.metrics_listen;
  RUBATO_ASSIGN_OR_RETURN(options.token, TokenForMetrics(options_.credentials, options.listen));
  options.port = metrics_port_;
  options.task = task();
  options.metrics = [this](MetricText* text) {
    MutexLock lock(mu_);
    if (member_ != nullptr) member_->AddMetrics(text);
  };
  options.health = &health_;
  options.clock = options_.clock;
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<TaskPage> page, TaskPage::Create(std::move(options)));
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
  if (calls_.read.has_value()) AnswerEnd(std::exchange(calls_.read, std::nullopt)->request);
  while (const std::optional<Frame> frame = queue_.Next(absl::ZeroDuration())) {
    // Those that wait for an answer.
    if (frame->request != 0) AnswerEnd(frame->request);
  }
  if (const std::optional<uint32_t> awaits = arrivals_.Take()) AnswerEnd(*awaits);
  if (lease_request_.has_value()) AnswerEnd(*std::exchange(lease_request_, std::nullopt));
  if (!close_request_.has_value()) return;
  // A client that closes because of an error of its own has done so.
  const bool failed = end_->result != RUBATO_ENDED && gave_up_.ok();
  answers_.Send(*close_request_, failed ? end_->result : RUBATO_OK, failed ? end_->error : "");
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

void Sidecar::AnswerEnd(uint32_t request) {
  end_->told = true;
  answers_.Send(request, end_->result, end_->error);
}

void Sidecar::AnswerBegin(uint32_t request, const StepBody& step, const std::string& rows) {
  answers_.Send(request, RUBATO_OK, "", Encode(step) + rows);
}

void Sidecar::AnswerLease(uint32_t request, const std::optional<LeaseBody>& lease) {
  {
    MutexLock lock(mu_);
    if (lease_request_ == request) lease_request_.reset();
  }
  if (lease.has_value()) {
    answers_.Send(request, RUBATO_OK, "", Encode(*lease));
  } else {
    answers_.Send(request, RUBATO_ENDED);
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
