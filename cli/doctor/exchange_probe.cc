#include "cli/doctor/exchange_probe.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "common/status.h"
#include "common/task.h"
#include "common/transport/exchange_client.h"
#include "common/wire/exchange_codec.h"

namespace rubato {
namespace {

constexpr size_t kLargeBytes = size_t{1} << 20;
constexpr size_t kSmallBytes = size_t{4} << 10;
constexpr int kLargeOnTheWay = 4;
// Of a message that is in flight; keepalive finds out about a peer that is gone before.
constexpr absl::Duration kTimeout = absl::Seconds(20);

std::string ProbeName() { return absl::StrCat("rubato doctor, protocol ", kProtocolVersion); }

// Keeps some pushes in flight and counts the answers.
class ProbeClient : public ExchangeClient::Handler {
 public:
  explicit ProbeClient(const Clock* clock)
      : clock_(clock), gradients_(std::make_shared<const std::string>(kLargeBytes, '\0')) {}

  // Answers that came, and how long each took, in `duration`.
  absl::StatusOr<std::vector<absl::Duration>> Run(ExchangeClient* client, size_t bytes, int on_the_way,
                                                  absl::Duration duration) {
    const absl::Time until = clock_->Now() + duration;
    std::vector<absl::Duration> took;
    std::vector<absl::Time> sent(on_the_way);
    for (int slot = 0; slot < on_the_way; ++slot) Push(client, slot, bytes, &sent);
    for (int open = on_the_way; open > 0;) {
      RUBATO_ASSIGN_OR_RETURN(const uint64_t id, AwaitAnswer());
      if (id < 1 || id > sent.size()) {
        return absl::FailedPreconditionError(absl::StrCat("request_id: an answer to ", id, ", which was not sent"));
      }
      const int slot = static_cast<int>(id) - 1;
      const absl::Time now = clock_->Now();
      took.push_back(now - sent[slot]);
      if (now < until) {
        Push(client, slot, bytes, &sent);
      } else {
        --open;
      }
    }
    return took;
  }

 private:
  void Push(ExchangeClient* client, int slot, size_t bytes, std::vector<absl::Time>* sent) {
    v1::ExchangeRequest header;
    header.set_request_id(static_cast<uint64_t>(slot) + 1);
    v1::ChunkUpdate* update = header.mutable_push_pull()->add_chunks();
    update->set_length(static_cast<uint32_t>(bytes / sizeof(float)));
    (*sent)[slot] = clock_->Now();
    client->Send(EncodeRequest(header, {SliceOf(gradients_, gradients_->data(), bytes)}));
  }

  // The id of a request that was answered.
  absl::StatusOr<uint64_t> AwaitAnswer() {
    MutexLock lock(mu_);
    const absl::Time deadline = clock_->Now() + kTimeout;
    while (answered_.empty() && status_.ok()) {
      const absl::Duration left = deadline - clock_->Now();
      if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("no answer to a push");
      changed_.WaitFor(mu_, left);
    }
    if (!status_.ok()) return status_;
    const uint64_t id = answered_.back();
    answered_.pop_back();
    return id;
  }

  void OnMessages(std::vector<grpc::ByteBuffer> messages) override {
    for (const grpc::ByteBuffer& message : messages) TakeReply(DecodeReply(message));
    changed_.NotifyAll();
  }

  void TakeReply(const absl::StatusOr<DecodedReply>& reply) {
    MutexLock lock(mu_);
    if (!reply.ok()) {
      status_ = reply.status();
    } else if (reply->header.message() != ProbeName()) {
      status_ = absl::FailedPreconditionError(absl::StrCat(
          "what answers there is no `rubato doctor --serve` of this release: \"", reply->header.message(), "\""));
    } else {
      answered_.push_back(reply->header.request_id());
    }
  }

  void OnDisconnected(absl::Status status) override {
    MutexLock lock(mu_);
    if (status_.ok()) status_ = std::move(status);
    changed_.NotifyAll();
  }

  const Clock* const clock_;
  const std::shared_ptr<const std::string> gradients_;
  Mutex mu_;
  CondVar changed_;
  std::vector<uint64_t> answered_ ABSL_GUARDED_BY(mu_);
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<ProbeServer>> ProbeServer::Create(const std::string& listen) {
  auto probe = absl::WrapUnique(new ProbeServer());
  RUBATO_ASSIGN_OR_RETURN(probe->server_, ExchangeServer::Create({.listen = listen}, probe.get()));
  return probe;
}

void ProbeServer::OnMessage(std::shared_ptr<Connection> connection, grpc::ByteBuffer&& message) {
  absl::StatusOr<DecodedRequest> request = DecodeRequest(message, kMaxPayloadBytes);
  v1::ExchangeReply reply;
  if (!request.ok()) {
    reply.set_outcome(v1::ExchangeReply::REFUSED);
    reply.set_message(std::string(request.status().message()));
    return connection->Send(EncodeReply(reply, {}), 0);
  }
  reply.set_request_id(request->header.request_id());
  reply.set_outcome(v1::ExchangeReply::OK);
  reply.set_message(ProbeName());
  std::vector<grpc::Slice> payload;
  if (request->payload.size() > 0) payload.push_back(SliceOf(weights_, weights_->data(), request->payload.size()));
  connection->Send(EncodeReply(reply, std::move(payload)), 0);
}

absl::StatusOr<ExchangeFacts> MeasureExchange(const std::string& address, absl::Duration duration, const Clock* clock) {
  ProbeClient probe(clock);
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<ExchangeClient> client, ExchangeClient::Create({.address = address}, &probe));
  // The first messages open connections; they do not count.
  RUBATO_RETURN_IF_ERROR(probe.Run(client.get(), kLargeBytes, kLargeOnTheWay, duration / 10).status());
  const absl::Time begin = clock->Now();
  RUBATO_ASSIGN_OR_RETURN(const std::vector<absl::Duration> large,
                          probe.Run(client.get(), kLargeBytes, kLargeOnTheWay, duration));
  const absl::Duration took = clock->Now() - begin;
  RUBATO_ASSIGN_OR_RETURN(std::vector<absl::Duration> small, probe.Run(client.get(), kSmallBytes, 1, duration / 4));
  std::nth_element(small.begin(), small.begin() + static_cast<int64_t>(small.size() / 2), small.end());
  return ExchangeFacts{2.0 * static_cast<double>(large.size() * kLargeBytes) / absl::ToDoubleSeconds(took),
                       small[small.size() / 2]};
}

}  // namespace rubato
