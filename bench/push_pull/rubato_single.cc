#include "bench/push_pull/rubato_single.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/job_server.h"
#include "bench/push_pull/client_memory.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/status.h"
#include "common/transport/exchange_client.h"
#include "common/wire/exchange_codec.h"

namespace rubato::bench {
namespace {

// For an answer; less than whoever runs this client waits for it.
constexpr absl::Duration kTimeout = absl::Seconds(30);

class SingleClient : public Client, private ExchangeClient::Handler {
 public:
  SingleClient(const Setup& setup, RubatoJob job)
      : setup_(setup),
        memory_(setup, {.sign = -1}),
        job_(std::move(job)),
        versions_(job_.description.chunks_size(), 0) {}

  // Begins step 0 of every tensor.
  absl::Status Start() {
    RUBATO_ASSIGN_OR_RETURN(const std::shared_ptr<const TaskSecurity> security,
                            OpenSecurity(job_.config, Party::kWorker));
    const std::string& address = job_.description.servers(0).address();
    RUBATO_ASSIGN_OR_RETURN(client_, ExchangeClient::Create({.address = address, .security = security}, this));
    return RunUntil("its tensors' first weights", kTimeout, [this](absl::Time) { return sent_ == setup_.chunks(); });
  }

  absl::StatusOr<Count> Run(absl::Duration duration) override {
    const absl::Time begin = clock_.Now();
    const int64_t before = sent_;
    RUBATO_RETURN_IF_ERROR(RunUntil("the answer to its last push", duration + kTimeout,
                                    [end = begin + duration](absl::Time now) { return now >= end; }));
    return Count{sent_ - before, clock_.Now() - begin};
  }

  absl::Status Verify() override { return memory_.Verify(); }

 private:
  // Sends, and goes on when answers arrive until `done`. DeadlineExceeded, naming `what`, if that takes longer than
  // `timeout`; no further run is possible then.
  absl::Status RunUntil(const char* what, absl::Duration timeout, std::function<bool(absl::Time)> done) {
    const absl::Time deadline = clock_.Now() + timeout;
    {
      MutexLock lock(mu_);
      RUBATO_RETURN_IF_ERROR(status_);
      ended_ = false;
    }
    done_ = std::move(done);
    Send();
    MutexLock lock(mu_);
    while (!ended_) {
      const absl::Duration left = deadline - clock_.Now();
      if (left > absl::ZeroDuration()) {
        changed_.WaitFor(mu_, left);
        continue;
      }
      status_ =
          absl::DeadlineExceededError(absl::StrCat("worker 0 waited ", absl::FormatDuration(timeout), " for ", what,
                                                   " of the server at ", job_.description.servers(0).address()));
      ended_ = true;
    }
    return status_;
  }

  // All messages of the next tensor. The first round through the tensors begins their steps, each later one pushes the
  // step that was begun.
  void Send() {
    const int64_t tensor = sent_ % setup_.chunks();
    const int64_t round = sent_ / setup_.chunks();
    ++sent_;
    open_ = parts_ / job_.message_chunks;
    for (int64_t chunk = tensor * parts_; chunk < (tensor + 1) * parts_; chunk += job_.message_chunks) {
      SendMessage(tensor, round - 1, chunk);
    }
  }

  // Of the chunks from `first` on.
  void SendMessage(int64_t tensor, int64_t step, int64_t first) {
    v1::ExchangeRequest header;
    header.set_request_id(first);
    *header.mutable_task() = RubatoWorker();
    header.set_job_fingerprint(job_.description.fingerprint());
    header.set_generation(job_.plan.generation());
    if (step < 0) {
      header.mutable_pull()->set_step(0);
      for (int i = 0; i < job_.message_chunks; ++i) header.mutable_pull()->add_chunks(first + i);
      return client_->Send(EncodeRequest(header, {}));
    }
    v1::PushPull* push = header.mutable_push_pull();
    push->set_step(step);
    push->set_examples(1);
    for (int i = 0; i < job_.message_chunks; ++i) {
      v1::ChunkUpdate* update = push->add_chunks();
      update->set_chunk(first + i);
      update->set_base_version(versions_[first + i]);
      update->set_length(setup_.floats() / parts_);
    }
    const float* gradient = memory_.Gradient(tensor) + job_.description.chunks(first).offset();
    client_->Send(
        EncodeRequest(header, {grpc::Slice(const_cast<float*>(gradient), message_bytes(), grpc::Slice::STATIC_SLICE)}));
  }

  void OnMessages(std::vector<grpc::ByteBuffer> messages) override {
    for (const grpc::ByteBuffer& message : messages) OnMessage(message);
  }
  void OnMessage(const grpc::ByteBuffer& message) {
    absl::Status status = Take(message);
    if (status.ok() && open_ > 0) return;
    if (status.ok() && sent_ > setup_.chunks()) memory_.CountTrip((sent_ - 1) % setup_.chunks());
    if (status.ok() && !done_(clock_.Now())) return Send();
    End(std::move(status));
  }
  void OnDisconnected(absl::Status status) override { End(std::move(status)); }

  absl::Status Take(const grpc::ByteBuffer& message) {
    RUBATO_ASSIGN_OR_RETURN(const DecodedReply reply, DecodeReply(message));
    const int64_t tensor = (sent_ - 1) % setup_.chunks();
    const v1::ExchangeReply& header = reply.header;
    const auto first = static_cast<int64_t>(header.request_id());
    bool expected = header.outcome() == v1::ExchangeReply::OK && header.chunks_size() == job_.message_chunks &&
                    first / parts_ == tensor;
    for (int i = 0; expected && i < job_.message_chunks; ++i) {
      expected = header.chunks(i).chunk() == first + i;
      if (expected) versions_[first + i] = header.chunks(i).version();
    }
    if (!expected) {
      return absl::InternalError(absl::StrCat("answer for tensor ", tensor, ": ", header.ShortDebugString()));
    }
    float* weights = memory_.Weights(tensor) + job_.description.chunks(first).offset();
    if (!reply.payload.CopyTo(0, message_bytes(), weights)) {
      return absl::InternalError(
          absl::StrCat("payload: ", reply.payload.size(), " bytes; asked for ", message_bytes()));
    }
    --open_;
    return absl::OkStatus();
  }

  int64_t message_bytes() const { return setup_.size / parts_ * job_.message_chunks; }

  void End(absl::Status status) {
    MutexLock lock(mu_);
    status_.Update(status);
    ended_ = true;
    changed_.NotifyAll();
  }

  const Setup setup_;
  RealClock clock_;
  // Used by whoever has the turn: the runner until it has sent, then the client's thread until it ends the run.
  ClientMemory memory_;
  const RubatoJob job_;
  // Chunks of a tensor.
  const int parts_ = static_cast<int>(job_.description.chunks_size() / setup_.chunks());
  std::vector<int64_t> versions_;  // By chunk.
  int64_t sent_ = 0;               // Tensors.
  int64_t open_ = 0;               // Messages of the last one without an answer.
  std::function<bool(absl::Time)> done_;

  Mutex mu_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mu_) = true;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<ExchangeClient> client_;  // Last: it calls what is above.
};

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> ConnectRubatoSingle(const Setup& setup, RubatoJob job) {
  auto client = std::make_unique<SingleClient>(setup, std::move(job));
  RUBATO_RETURN_IF_ERROR(client->Start());
  return client;
}

}  // namespace rubato::bench
