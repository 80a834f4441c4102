#include "worker/ps_client/ps_client.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato::worker {
namespace {

constexpr size_t kStalenessBuckets = 64;
constexpr absl::Duration kRetryInterval = absl::Milliseconds(100);
// A server answers every request within its patience, if only with WAITING; one that is silent for longer is gone.
constexpr absl::Duration kSilence = absl::Seconds(20);
constexpr absl::Duration kConnectTimeout = absl::Seconds(2);
constexpr absl::Duration kMaintenancePeriod = absl::Milliseconds(50);

}  // namespace

PsClient::PsClient(Options options)
    : options_(std::move(options)),
      batching_(MakeBatches(options_.job, static_cast<int>(options_.tensors.size()), options_.message_bytes)),
      machine_(static_cast<int>(batching_.batches.size()), this),
      links_(options_.job.servers_size()),
      versions_(options_.job.chunks_size(), 0),
      missing_tensors_(batching_.batches.size(), 0),
      storing_(batching_.batches.size(), false),
      examples_(batching_.batches.size(), 0) {
  for (int server = 0; server < options_.job.servers_size(); ++server) {
    links_[server].name = TaskName(options_.job.servers(server).task());
    links_[server].address = options_.job.servers(server).address();
    links_[server].down_since = options_.clock->Now();
  }
  counters_.staleness.assign(kStalenessBuckets, 0);
  maintenance_ = std::thread([this] { Maintain(); });
}

PsClient::~PsClient() {
  std::vector<Link> links;
  {
    MutexLock lock(mu_);
    stop_ = true;
    links.swap(links_);
  }
  changed_.NotifyAll();
  maintenance_.join();
  // Clients wait for their callbacks when they end, so this is done without the lock.
  for (Link& link : links) link.client.reset();
}

void PsClient::Start(const v1::Plan& plan) {
  MutexLock lock(mu_);
  machine_.Start(plan);
}

void PsClient::Send(const StepMachine::Request& request) {
  const ChunkBatch& batch = batching_.batches[request.batch];
  if (batch.server >= links_.size()) return;  // The client is ending.
  Link& link = links_[batch.server];
  if (link.client == nullptr) return;  // Sent again when there is a connection.
  v1::ExchangeRequest header;
  header.set_request_id(request.id);
  *header.mutable_task() = options_.task;
  header.set_job_fingerprint(options_.job.fingerprint());
  header.set_generation(request.generation);
  header.set_partition(batch.partition);
  std::vector<grpc::Slice> payload;
  if (request.kind == StepMachine::Kind::kPull) {
    header.mutable_pull()->set_step(request.step);
    for (uint32_t chunk : batch.chunks) header.mutable_pull()->add_chunks(chunk);
  } else {
    v1::PushPull* push = header.mutable_push_pull();
    push->set_step(request.step);
    push->set_examples(examples_[request.batch]);
    push->set_epoch(epoch_);
    for (uint32_t chunk : batch.chunks) {
      const v1::ChunkPlacement& placement = options_.job.chunks(chunk);
      v1::ChunkUpdate* update = push->add_chunks();
      update->set_chunk(chunk);
      update->set_base_version(versions_[chunk]);
      update->set_length(placement.length());
      if (examples_[request.batch] == 0) continue;
      payload.push_back(options_.memory->Gradient(placement.tensor(), placement.offset(), placement.length()));
      counters_.sent_bytes += static_cast<int64_t>(payload.back().size());
    }
  }
  if (link.heard_at == absl::InfinitePast()) link.heard_at = options_.clock->Now();
  link.client->Send(EncodeRequest(header, std::move(payload)));
}

absl::Status PsClient::CheckWeights(const ChunkBatch& batch, const v1::ExchangeReply& reply,
                                    uint64_t payload_bytes) const {
  if (reply.chunks_size() != static_cast<int>(batch.chunks.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunks: ", reply.chunks_size(), " entries; asked for ", batch.chunks.size()));
  }
  for (size_t i = 0; i < batch.chunks.size(); ++i) {
    const v1::ChunkWeights& entry = reply.chunks(i);
    if (entry.chunk() != batch.chunks[i] || entry.length() != options_.job.chunks(batch.chunks[i]).length()) {
      return absl::InvalidArgumentError(absl::StrCat("chunks[", i, "]: chunk ", entry.chunk(), " of length ",
                                                     entry.length(), "; asked for chunk ", batch.chunks[i],
                                                     " of length ", options_.job.chunks(batch.chunks[i]).length()));
    }
  }
  if (payload_bytes != static_cast<uint64_t>(batch.bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("payload: ", payload_bytes, " bytes; the chunks have ", batch.bytes));
  }
  return absl::OkStatus();
}

void PsClient::StoreWeights(const ChunkBatch& batch, const PayloadView& payload) {
  uint64_t at = 0;
  std::vector<float> joined;
  for (uint32_t chunk : batch.chunks) {
    const v1::ChunkPlacement& placement = options_.job.chunks(chunk);
    const uint64_t bytes = placement.length() * sizeof(float);
    const void* data = payload.Contiguous(at, bytes);
    if (data == nullptr) {
      joined.resize(placement.length());
      payload.CopyTo(at, bytes, joined.data());
      data = joined.data();
    }
    options_.memory->Store(placement.tensor(), placement.offset(), data, placement.length());
    at += bytes;
  }
}

void PsClient::OnMessage(uint32_t server, const Connection* connection, grpc::ByteBuffer message) {
  absl::StatusOr<DecodedReply> decoded = DecodeReply(message);
  int batch = -1;
  {
    MutexLock lock(mu_);
    if (stop_ || links_[server].connection.get() != connection) return;
    links_[server].heard_at = options_.clock->Now();
    if (!decoded.ok()) return Fail(Annotate(decoded.status(), absl::StrCat("answer of ", links_[server].name)));
    batch = machine_.BatchOf(decoded->header.request_id());
    if (batch < 0 || batching_.batches[batch].server != server || storing_[batch]) return;
    if (decoded->header.outcome() != v1::ExchangeReply::OK) return TakeReply(batch, decoded->header);
    absl::Status status = CheckWeights(batching_.batches[batch], decoded->header, decoded->payload.size());
    if (!status.ok()) return Fail(Annotate(status, absl::StrCat("answer of ", links_[server].name)));
    storing_[batch] = true;  // Nobody asks for this batch again meanwhile.
  }
  StoreWeights(batching_.batches[batch], decoded->payload);
  MutexLock lock(mu_);
  storing_[batch] = false;
  counters_.received_bytes += batching_.batches[batch].bytes;
  TakeReply(batch, decoded->header);
}

void PsClient::TakeReply(int batch, const v1::ExchangeReply& reply) {
  for (const v1::ChunkWeights& entry : reply.chunks()) {
    if (entry.applied_to_version() >= 0) {
      step_staleness_ = std::max(step_staleness_, entry.applied_to_version() - versions_[entry.chunk()]);
    }
    versions_[entry.chunk()] = entry.version();
  }
  if (reply.push() == v1::ExchangeReply::PUSH_NON_FINITE) {
    ++counters_.non_finite;
    if (options_.stop_on_non_finite) {
      return Fail(absl::OutOfRangeError(absl::StrCat(
          "STOP_JOB: ", TaskName(options_.task), ", step ", machine_.current_step(), ": the gradient of ",
          options_.tensors[batching_.tensors_of_batch[batch].front()], " (or of what travels with it) is not finite")));
    }
  }
  if (reply.outcome() == v1::ExchangeReply::WAITING) {
    counters_.waiting_for = absl::StrCat("step ", machine_.step(), " ", reply.message(), " (",
                                         links_[batching_.batches[batch].server].name, ")");
  }
  if (absl::Status status = machine_.OnReply(reply.request_id(), reply); !status.ok()) {
    return Fail(Annotate(status, links_[batching_.batches[batch].server].name));
  }
  changed_.NotifyAll();
}

void PsClient::OnDisconnected(uint32_t server, const Connection* connection, absl::Status status) {
  MutexLock lock(mu_);
  if (stop_ || links_[server].connection.get() != connection) return;
  Link& link = links_[server];
  options_.log->Warning(absl::StrCat("connection to ", link.name, " at ", link.address, " broke: ", status.message(),
                                     "; connecting again"));
  link.connection = nullptr;  // Maintain() ends the client, which must not be done from its own callback.
  changed_.NotifyAll();
}

void PsClient::Fail(absl::Status status) {
  if (failed_.ok()) failed_ = std::move(status);
  changed_.NotifyAll();
}

void PsClient::Cancel(absl::Status status) {
  MutexLock lock(mu_);
  Fail(std::move(status));
}

void PsClient::Maintain() {
  for (;;) {
    std::vector<uint32_t> broken;
    {
      MutexLock lock(mu_);
      if (stop_) return;
      const absl::Time now = options_.clock->Now();
      for (uint32_t server = 0; server < links_.size(); ++server) {
        Link& link = links_[server];
        bool open = false;
        for (size_t b = 0; b < batching_.batches.size(); ++b) {
          open = open || (batching_.batches[b].server == server && machine_.HasOpen(static_cast<int>(b)));
        }
        if (!open) link.heard_at = now;
        const bool silent = link.client != nullptr && now - link.heard_at > kSilence;
        if ((link.connection == nullptr || silent) && now >= link.retry_at) broken.push_back(server);
      }
      if (broken.empty()) changed_.WaitFor(mu_, kMaintenancePeriod);
    }
    for (uint32_t server : broken) Reconnect(server);
  }
}

void PsClient::Reconnect(uint32_t server) {
  std::unique_ptr<ExchangeClient> old;
  std::unique_ptr<Connection> old_connection;
  std::string address;
  {
    MutexLock lock(mu_);
    if (stop_) return;
    Link& link = links_[server];
    old = std::move(link.client);
    old_connection = std::move(link.connection);
    address = link.address;
    if (old != nullptr) link.down_since = options_.clock->Now();
  }
  old.reset();  // Waits for its callbacks, hence without the lock.
  auto connection = std::make_unique<Connection>(this, server);
  ExchangeClient::Options options;
  options.address = address;
  options.connect_timeout = kConnectTimeout;
  absl::StatusOr<std::unique_ptr<ExchangeClient>> client = ExchangeClient::Create(options, connection.get());

  MutexLock lock(mu_);
  if (stop_) return;
  const absl::Time now = options_.clock->Now();
  Link& link = links_[server];
  if (!client.ok()) {
    link.retry_at = now + kRetryInterval;
    if (now - link.down_since > options_.reconnect_timeout) {
      Fail(absl::UnavailableError(absl::StrCat(link.name, " at ", address, " cannot be reached since ",
                                               absl::FormatDuration(now - link.down_since), ": ",
                                               client.status().message())));
    }
    return;
  }
  link.connection = std::move(connection);
  link.client = *std::move(client);
  link.heard_at = now;
  for (size_t b = 0; b < batching_.batches.size(); ++b) {
    if (batching_.batches[b].server == server && !storing_[b]) machine_.Resend(static_cast<int>(b));
  }
}

absl::Status PsClient::AwaitLocked(const std::function<bool()>& done) {
  const absl::Time begin = options_.clock->Now();
  absl::Time next_log = begin + absl::Seconds(5);
  while (failed_.ok() && !done()) {
    changed_.WaitFor(mu_, absl::Milliseconds(200));
    const absl::Time now = options_.clock->Now();
    const std::string what = counters_.waiting_for.empty()
                                 ? absl::StrCat("step ", machine_.step(), " waits for the servers' answers")
                                 : counters_.waiting_for;
    if (now >= next_log && !done()) {
      options_.log->Info(
          absl::StrCat(what, ", for ", absl::FormatDuration(absl::Floor(now - begin, absl::Seconds(1)))));
      next_log = now + absl::Seconds(5);
    }
    if (now - begin > options_.wait_timeout && !done()) {
      Fail(absl::DeadlineExceededError(absl::StrCat(
          what, ", longer than cluster.wait_timeout_seconds = ", absl::ToDoubleSeconds(options_.wait_timeout))));
    }
  }
  step_wait_ += options_.clock->Now() - begin;
  counters_.waiting_for.clear();
  return failed_;
}

Parameters::Step PsClient::next_step() {
  MutexLock lock(mu_);
  return {machine_.generation(), machine_.step(), machine_.plan()};
}

absl::StatusOr<bool> PsClient::AwaitTensor(int tensor) {
  MutexLock lock(mu_);
  const std::vector<int>& batches = batching_.batches_of_tensor[tensor];
  RUBATO_RETURN_IF_ERROR(AwaitLocked([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return machine_.moved() || std::all_of(batches.begin(), batches.end(),
                                           [&](int b) ABSL_NO_THREAD_SAFETY_ANALYSIS { return machine_.Have(b); });
  }));
  return !machine_.moved();
}

void PsClient::Restart() {
  MutexLock lock(mu_);
  if (machine_.moved()) machine_.Restart();
}

absl::StatusOr<bool> PsClient::BeginStep(Step* step) {
  MutexLock lock(mu_);
  RUBATO_RETURN_IF_ERROR(
      AwaitLocked([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return machine_.moved() || machine_.complete(); }));
  if (machine_.moved()) return false;
  *step = {machine_.generation(), machine_.step(), machine_.plan()};
  if (step_staleness_ >= 0) {
    ++counters_.staleness[std::min<size_t>(step_staleness_, kStalenessBuckets - 1)];
    step_staleness_ = -1;
  }
  if (machine_.generation() != machine_.current_generation()) counters_.entry_wait = step_wait_;
  step_wait_ = absl::ZeroDuration();
  machine_.BeginStep();
  for (size_t b = 0; b < missing_tensors_.size(); ++b) {
    missing_tensors_[b] = static_cast<int>(batching_.tensors_of_batch[b].size());
    examples_[b] = std::numeric_limits<uint64_t>::max();
  }
  return true;
}

void PsClient::PushTensor(int tensor, uint64_t examples, double epoch) {
  MutexLock lock(mu_);
  epoch_ = epoch;
  for (int batch : batching_.batches_of_tensor[tensor]) {
    // One empty tensor makes the batch empty.
    examples_[batch] = std::min(examples_[batch], examples);
    if (--missing_tensors_[batch] == 0) machine_.Push(batch);
  }
}

absl::Status PsClient::AwaitAcknowledgements() {
  MutexLock lock(mu_);
  return AwaitLocked([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return machine_.open_pushes() == 0; });
}

PsClient::Counters PsClient::counters() {
  MutexLock lock(mu_);
  return counters_;
}

}  // namespace rubato::worker
