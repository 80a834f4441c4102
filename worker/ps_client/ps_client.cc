#include "worker/ps_client/ps_client.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/shared_memory/boot_id.h"
#include "common/status.h"
#include "common/task.h"
#include "common/trace/flow_id.h"
#include "worker/ps_client/arrived_weights.h"
#include "worker/ps_client/not_finite.h"

namespace rubato::worker {
namespace {

constexpr size_t kStalenessBuckets = 64;
constexpr absl::Duration kRetryInterval = absl::Milliseconds(100);
// A server answers every request within its patience, if only with WAITING; one that is silent for longer is gone.
constexpr absl::Duration kSilence = absl::Seconds(20);
constexpr absl::Duration kConnectTimeout = absl::Seconds(2);
constexpr absl::Duration kMaintenancePeriod = absl::Milliseconds(50);
// Of address space, to map a server's memory.
constexpr size_t kServerMemoryMax = size_t{1} << 46;

constexpr TraceKind kPushAndPull = {"exchange", "push and pull", {"step", "sent_bytes", "received_bytes"}};
constexpr TraceKind kPull = {"exchange", "pull", {"step", "sent_bytes", "received_bytes"}};
constexpr TraceKind kStore = {"store", "store", {"step"}};

Batching BatchesOf(const PsClient::Options& options) {
  const std::string host = options.arena == nullptr ? "" : ReadBootId().value_or("");
  return MakeBatches(
      options.job, static_cast<int>(options.tensors.size()), options.message_bytes, [&](uint32_t server) {
        const v1::SharedMemoryAddress& address = options.job.servers(static_cast<int>(server)).shared_memory();
        return !host.empty() && !address.socket().empty() && address.boot_id() == host;
      });
}

}  // namespace

PsClient::PsClient(Options options)
    : options_(std::move(options)),
      batching_(BatchesOf(options_)),
      machine_(static_cast<int>(batching_.batches.size()), this),
      links_(options_.job.servers_size() * options_.connections_per_server),
      versions_(options_.job.chunks_size(), 0),
      missing_tensors_(batching_.batches.size(), 0),
      storing_(batching_.batches.size(), false),
      ways_(batching_.batches.size()),
      batch_names_(batching_.batches.size()),
      examples_(batching_.batches.size(), 0) {
  for (size_t link = 0; link < links_.size(); ++link) {
    const v1::ServerInfo& server = options_.job.servers(static_cast<int>(link) / options_.connections_per_server);
    links_[link].name = TaskName(server.task());
    links_[link].address = server.address();
    links_[link].shared_address = server.shared_memory();
    links_[link].down_since = options_.clock->Now();
  }
  // A server's batches take its streams in turn.
  std::vector<int> batches_of_server(options_.job.servers_size(), 0);
  for (const ChunkBatch& batch : batching_.batches) {
    const int turn = batches_of_server[batch.server]++ % options_.connections_per_server;
    link_of_batch_.push_back(static_cast<int>(batch.server) * options_.connections_per_server + turn);
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
  maintain_.NotifyAll();
  maintenance_.join();
  // Clients wait for their callbacks when they end, so this is done without the lock.
  for (Link& link : links) link.client.reset();
}

void PsClient::Start(const v1::Plan& plan) {
  MutexLock lock(mu_);
  machine_.Start(plan);
}

const float* PsClient::Gradient(uint32_t chunk) const {
  const v1::ChunkPlacement& placement = options_.job.chunks(chunk);
  return options_.memory->Gradient(placement.tensor(), placement.offset());
}

v1::Codec PsClient::CodecOf(uint32_t chunk) const {
  return options_.packer == nullptr ? v1::NONE : options_.packer->codec(chunk);
}

void PsClient::Pack(const ChunkBatch& batch, int64_t step) {
  if (options_.packer == nullptr) return;
  for (uint32_t chunk : batch.chunks) options_.packer->Pack(chunk, Gradient(chunk), step);
}

ByteSpan PsClient::EncodedGradient(uint32_t chunk) const {
  if (CodecOf(chunk) == v1::NONE) return BytesOf(Gradient(chunk), options_.job.chunks(chunk).length());
  return options_.packer->Message(chunk);
}

void PsClient::AddGradients(const ChunkBatch& batch, const Link& link, v1::ExchangeRequest* header,
                            std::vector<grpc::Slice>* payload) {
  bool shared = link.shared != nullptr;
  for (size_t i = 0; shared && i < batch.chunks.size(); ++i) {
    const ByteSpan gradient = EncodedGradient(batch.chunks[i]);
    const std::optional<uint64_t> offset = options_.arena->region().OffsetOf(gradient.data(), gradient.size());
    shared = offset.has_value();
    if (!shared) break;
    v1::SharedSpan* span = header->add_shared();
    span->set_offset(*offset);
    span->set_bytes(gradient.size());
  }
  if (!shared) header->clear_shared();
  for (uint32_t chunk : batch.chunks) {
    const ByteSpan gradient = EncodedGradient(chunk);
    counters_.sent_bytes += static_cast<int64_t>(gradient.size());
    if (!shared) payload->emplace_back(gradient.data(), gradient.size(), grpc::Slice::STATIC_SLICE);
  }
}

void PsClient::Send(const StepMachine::Request& request) {
  const ChunkBatch& batch = batching_.batches[request.batch];
  if (links_.empty()) return;  // The client is ending.
  Link& link = links_[link_of_batch_[request.batch]];
  if (link.client == nullptr) return;  // Sent again when there is a connection.
  v1::ExchangeRequest header;
  header.set_request_id(request.id);
  *header.mutable_task() = options_.task;
  header.set_job_fingerprint(options_.job.fingerprint());
  header.set_generation(request.generation);
  header.set_partition(batch.partition);
  if (link.shared != nullptr) header.set_shared_session(link.shared->session());
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
      v1::ChunkUpdate* update = push->add_chunks();
      update->set_chunk(chunk);
      update->set_base_version(versions_[chunk]);
      update->set_length(options_.job.chunks(chunk).length());
      if (CodecOf(chunk) == v1::NONE || examples_[request.batch] == 0) continue;
      update->set_codec(CodecOf(chunk));
      update->set_encoded_bytes(EncodedGradient(chunk).size());
    }
    if (examples_[request.batch] != 0) AddGradients(batch, link, &header, &payload);
  }
  const absl::Time now = options_.clock->Now();
  Way& way = ways_[request.batch];
  if (way.begun == absl::InfinitePast()) way.begun = now;
  if (request.kind != StepMachine::Kind::kPull) way.pushed_step = request.step;
  if (link.heard_at == absl::InfinitePast()) link.heard_at = now;
  // What the next forward needs first overtakes what it needs later.
  link.client->Send(EncodeRequest(header, std::move(payload)), request.batch);
}

void PsClient::OnMessage(int index, const Connection* connection, grpc::ByteBuffer message) {
  const absl::Time begin = options_.clock->Now();
  absl::StatusOr<DecodedReply> decoded = DecodeReply(message);
  int batch = -1;
  std::vector<ArrivedWeights> weights;
  {
    MutexLock lock(mu_);
    if (stop_ || links_[index].connection.get() != connection) return;
    Link& link = links_[index];
    link.heard_at = begin;
    if (!decoded.ok()) return Fail(Annotate(decoded.status(), absl::StrCat("answer of ", link.name)));
    batch = machine_.BatchOf(decoded->header.request_id());
    if (batch < 0 || link_of_batch_[batch] != index || storing_[batch]) return;
    if (decoded->header.outcome() != v1::ExchangeReply::OK) return TakeReply(batch, decoded->header);
    // The server's memory stays mapped until this call has returned: see Link.
    const SharedRegion* region = link.shared == nullptr ? nullptr : &link.shared->peer();
    absl::StatusOr<std::vector<ArrivedWeights>> found =
        FindWeights(options_.job, batching_.batches[batch], *decoded, region);
    if (!found.ok()) return Fail(Annotate(found.status(), absl::StrCat("answer of ", link.name)));
    weights = *std::move(found);
    storing_[batch] = true;  // Nobody asks for this batch again meanwhile.
  }
  int64_t bytes = 0;
  absl::Status status;
  for (size_t i = 0; i < weights.size() && status.ok(); ++i) {
    const v1::ChunkPlacement& placement = options_.job.chunks(batching_.batches[batch].chunks[i]);
    status = Unpack(weights[i], placement.length(), options_.memory->Weights(placement.tensor(), placement.offset()));
    bytes += static_cast<int64_t>(weights[i].bytes);
  }
  MutexLock lock(mu_);
  storing_[batch] = false;
  if (stop_) return;
  if (!status.ok()) return Fail(Annotate(status, absl::StrCat("answer of ", links_[index].name)));
  counters_.received_bytes += bytes;
  if (options_.trace != nullptr && options_.trace->enabled()) Trace(batch, bytes, begin);
  ways_[batch] = {};
  TakeReply(batch, decoded->header);
}

std::pair<TraceTrack, TraceText> PsClient::BatchNames(int batch) {
  auto& names = batch_names_[batch];
  if (names.first.number != 0) return names;
  const std::vector<int>& tensors = batching_.tensors_of_batch[batch];
  std::string range = options_.tensors[tensors.front()];
  if (tensors.size() > 1) absl::StrAppend(&range, " to ", options_.tensors[tensors.back()]);
  const std::string track = absl::StrCat("batch ", batch, " (", links_[link_of_batch_[batch]].name, ")");
  return names = {options_.trace->Track(track), options_.trace->Text(range)};
}

void PsClient::Trace(int batch, int64_t received_bytes, absl::Time begin) {
  const absl::Time now = options_.clock->Now();
  const auto [track, tensors] = BatchNames(batch);
  const Way& way = ways_[batch];
  const bool pushed = way.pushed_step >= 0;
  int64_t sent_bytes = 0;
  if (pushed && examples_[batch] != 0) {
    for (uint32_t chunk : batching_.batches[batch].chunks)
      sent_bytes += static_cast<int64_t>(EncodedGradient(chunk).size());
  }
  const int64_t step = machine_.step();
  options_.trace->Span(pushed ? kPushAndPull : kPull, {track, tensors, way.begun, now},
                       {step, sent_bytes, received_bytes});
  options_.trace->Span(kStore, {track, tensors, begin, now}, {step});
  if (!pushed) return;
  for (uint32_t chunk : batching_.batches[batch].chunks) {
    const uint64_t id = PushFlowId(options_.task, way.pushed_step, chunk);
    options_.trace->Flow(kPushFlow, {.track = track, .id = id, .begins = true, .at = way.begun});
  }
}

void PsClient::TakeReply(int batch, const v1::ExchangeReply& reply) {
  for (const v1::ChunkWeights& entry : reply.chunks()) {
    if (entry.applied_to_version() >= 0) {
      step_staleness_ = std::max(step_staleness_, entry.applied_to_version() - versions_[entry.chunk()]);
    }
    versions_[entry.chunk()] = entry.version();
  }
  // A push that is pending is sent again.
  if (reply.push() != v1::ExchangeReply::PUSH_NONE && reply.push() != v1::ExchangeReply::PUSH_PENDING) {
    ++counters_.pushes;
  }
  if (reply.outcome() == v1::ExchangeReply::OK) ++counters_.pulls;
  if (reply.push() == v1::ExchangeReply::PUSH_NON_FINITE) {
    ++counters_.non_finite;
    if (options_.stop_on_non_finite) {
      return Fail(NotFiniteError(absl::StrCat(
          TaskName(options_.task), ", step ", machine_.current_step(), ": the gradient of ",
          options_.tensors[batching_.tensors_of_batch[batch].front()], " (or of what travels with it) is not finite")));
    }
  }
  if (reply.outcome() == v1::ExchangeReply::WAITING) {
    counters_.waiting_for =
        absl::StrCat("step ", machine_.step(), " ", reply.message(), " (", links_[link_of_batch_[batch]].name, ")");
  }
  if (absl::Status status = machine_.OnReply(reply.request_id(), reply); !status.ok()) {
    return Fail(Annotate(status, links_[link_of_batch_[batch]].name));
  }
  WakeTrainer();
}

void PsClient::WakeTrainer() {
  if (awaited_ != nullptr && (*awaited_)()) changed_.NotifyAll();
}

void PsClient::OnDisconnected(int index, const Connection* connection, absl::Status status) {
  MutexLock lock(mu_);
  if (stop_ || links_[index].connection.get() != connection) return;
  Link& link = links_[index];
  options_.log->Warning(absl::StrCat("connection to ", link.name, " at ", link.address, " broke: ", status.message(),
                                     "; connecting again"));
  link.connection = nullptr;  // Maintain() ends the client, which must not be done from its own callback.
  maintain_.NotifyAll();
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
    std::vector<int> broken;
    {
      MutexLock lock(mu_);
      if (stop_) return;
      const absl::Time now = options_.clock->Now();
      std::vector<bool> open(links_.size(), false);
      for (size_t b = 0; b < link_of_batch_.size(); ++b) {
        if (machine_.HasOpen(static_cast<int>(b))) open[link_of_batch_[b]] = true;
      }
      for (size_t index = 0; index < links_.size(); ++index) {
        Link& link = links_[index];
        if (!open[index]) link.heard_at = now;
        const bool silent = link.client != nullptr && now - link.heard_at > kSilence;
        if ((link.connection == nullptr || silent) && now >= link.retry_at) broken.push_back(static_cast<int>(index));
      }
      if (broken.empty()) maintain_.WaitFor(mu_, kMaintenancePeriod);
    }
    for (int link : broken) Reconnect(link);
  }
}

std::unique_ptr<SharedMemoryLink> PsClient::ConnectMemory(const v1::SharedMemoryAddress& address,
                                                          const std::string& name) {
  if (options_.arena == nullptr || address.socket().empty()) return nullptr;
  absl::StatusOr<std::unique_ptr<SharedMemoryLink>> link = SharedMemoryLink::Connect(
      address, options_.task, options_.arena->shared_region(), kServerMemoryMax, kConnectTimeout);
  if (link.ok()) return *std::move(link);
  // FailedPrecondition: it is on another host.
  if (!absl::IsFailedPrecondition(link.status())) {
    options_.log->Info(absl::StrCat("tensors to and from ", name, " go over TCP: ", link.status().message()));
  }
  return nullptr;
}

void PsClient::Reconnect(int index) {
  // Ended in reverse order: a client's callbacks use the two others.
  std::unique_ptr<SharedMemoryLink> old_shared;
  std::unique_ptr<Connection> old_connection;
  std::unique_ptr<ExchangeClient> old;
  std::string address, name;
  v1::SharedMemoryAddress shared_address;
  {
    MutexLock lock(mu_);
    if (stop_) return;
    Link& link = links_[index];
    old = std::move(link.client);
    old_connection = std::move(link.connection);
    old_shared = std::move(link.shared);
    address = link.address;
    name = link.name;
    shared_address = link.shared_address;
    if (old != nullptr) link.down_since = options_.clock->Now();
  }
  old.reset();  // Waits for its callbacks, hence without the lock.
  old_shared.reset();
  std::unique_ptr<SharedMemoryLink> shared;
  auto connection = std::make_unique<Connection>(this, index);
  ExchangeClient::Options options;
  options.address = address;
  options.connect_timeout = kConnectTimeout;
  absl::StatusOr<std::unique_ptr<ExchangeClient>> client = ExchangeClient::Create(options, connection.get());
  if (client.ok()) shared = ConnectMemory(shared_address, name);

  MutexLock lock(mu_);
  if (stop_) return;
  const absl::Time now = options_.clock->Now();
  Link& link = links_[index];
  // A stream that broke before it is the link's is nobody's to be told of.
  absl::Status status = client.status();
  if (client.ok() && !(*client)->connected())
    status = absl::UnavailableError("the stream broke as soon as it was open");
  if (!status.ok()) {
    link.retry_at = now + kRetryInterval;
    if (now - link.down_since > options_.reconnect_timeout) {
      Fail(absl::UnavailableError(absl::StrCat(name, " at ", address, " cannot be reached since ",
                                               absl::FormatDuration(now - link.down_since), ": ", status.message())));
    }
    return;
  }
  link.connection = std::move(connection);
  link.shared = std::move(shared);
  link.client = *std::move(client);
  link.heard_at = now;
  for (size_t b = 0; b < link_of_batch_.size(); ++b) {
    if (link_of_batch_[b] == index && !storing_[b]) machine_.Resend(static_cast<int>(b));
  }
}

absl::Status PsClient::AwaitLocked(const std::function<bool()>& done) {
  if (failed_.ok() && done()) {
    counters_.waiting_for.clear();
    return absl::OkStatus();
  }
  const absl::Time begin = options_.clock->Now();
  absl::Time next_log = begin + absl::Seconds(5);
  awaited_ = &done;
  waits_since_ = begin;
  while (failed_.ok() && !done()) {
    changed_.WaitFor(mu_, absl::Milliseconds(200));
    const absl::Time now = options_.clock->Now();
    if (done() || (now < next_log && now - begin <= options_.wait_timeout)) continue;
    const std::string what = counters_.waiting_for.empty()
                                 ? absl::StrCat("step ", machine_.step(), " waits for the servers' answers")
                                 : counters_.waiting_for;
    if (now >= next_log) {
      options_.log->Info(
          absl::StrCat(what, ", for ", absl::FormatDuration(absl::Floor(now - begin, absl::Seconds(1)))));
      next_log = now + absl::Seconds(5);
    }
    if (now - begin > options_.wait_timeout) {
      Fail(absl::DeadlineExceededError(absl::StrCat(
          what, ", longer than cluster.wait_timeout_seconds = ", absl::ToDoubleSeconds(options_.wait_timeout))));
    }
  }
  awaited_ = nullptr;
  waits_since_ = absl::InfiniteFuture();
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
  std::vector<int> due, full;
  int64_t step = 0;
  {
    MutexLock lock(mu_);
    epoch_ = epoch;
    step = machine_.current_step();
    for (int batch : batching_.batches_of_tensor[tensor]) {
      // One empty tensor makes the batch empty.
      examples_[batch] = std::min(examples_[batch], examples);
      if (--missing_tensors_[batch] > 0) continue;
      due.push_back(batch);
      if (examples_[batch] > 0) full.push_back(batch);
    }
  }
  for (int batch : full) Pack(batching_.batches[batch], step);
  MutexLock lock(mu_);
  for (int batch : due) machine_.Push(batch);
}

absl::Status PsClient::AwaitAcknowledgements() {
  MutexLock lock(mu_);
  return AwaitLocked([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return machine_.open_pushes() == 0; });
}

PsClient::Counters PsClient::counters() {
  MutexLock lock(mu_);
  Counters counters = counters_;
  counters.waiting = std::max(options_.clock->Now() - waits_since_, absl::ZeroDuration());
  return counters;
}

bool PsClient::uses_shared_memory() {
  MutexLock lock(mu_);
  return std::all_of(links_.begin(), links_.end(),
                     [](const Link& link) { return link.client == nullptr || link.shared != nullptr; });
}

}  // namespace rubato::worker
