#include "worker/ps_client/ps_client.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/shared_memory/boot_id.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato::worker {
namespace {

constexpr size_t kStalenessBuckets = 64;
// Of a batch: no tensor that has a gradient was pushed yet.
constexpr uint64_t kNoneYet = std::numeric_limits<uint64_t>::max();

// Of a model's weights; caches have less.
constexpr int64_t kLargeModelBytes = int64_t{256} << 20;

bool IsLarge(const v1::JobDescription& job) {
  int64_t elements = 0;
  for (const v1::ChunkPlacement& chunk : job.chunks()) elements += chunk.length();
  return elements * static_cast<int64_t>(sizeof(float)) > kLargeModelBytes;
}

Batching BatchesOf(const PsClient::Options& options) {
  const std::string host = options.arena == nullptr ? "" : ReadBootId().value_or("");
  return MakeBatches(
      options.job, static_cast<int>(options.tensors.size()), options.message_bytes, [&](uint32_t server) {
        const v1::SharedMemoryAddress& address = options.job.servers(static_cast<int>(server)).shared_memory();
        return !host.empty() && !address.socket().empty() && address.boot_id() == host;
      });
}

ServerConnections::Options ConnectionOptions(const PsClient::Options& options) {
  return {.task = options.task,
          .security = options.security,
          .servers = {options.job.servers().begin(), options.job.servers().end()},
          .per_server = options.connections_per_server,
          .arena = options.arena,
          .link = options.link,
          .reconnect_timeout = options.reconnect_timeout,
          .clock = options.clock,
          .log = options.log};
}

// By batch.
std::vector<ExchangeTrace::BatchName> NamesOf(const PsClient::Options& options, const Batching& batching) {
  std::vector<ExchangeTrace::BatchName> names;
  for (size_t batch = 0; batch < batching.batches.size(); ++batch) {
    const v1::ServerInfo& server = options.job.servers(static_cast<int>(batching.batches[batch].server));
    const std::vector<int>& tensors = batching.tensors_of_batch[batch];
    if (const int table = batching.batches[batch].table; table >= 0) {
      names.push_back({.server = TaskName(server.task()), .tensors = options.tables[table].config.name()});
      continue;
    }
    std::string range = options.tensors[tensors.front()];
    if (tensors.size() > 1) absl::StrAppend(&range, " to ", options.tensors[tensors.back()]);
    names.push_back({.server = TaskName(server.task()), .tensors = std::move(range)});
  }
  return names;
}

}  // namespace

PsClient::PsClient(Options options)
    : options_(std::move(options)),
      batching_(BatchesOf(options_)),
      is_large_model_(IsLarge(options_.job)),
      machine_(static_cast<int>(batching_.batches.size()), this),
      absent_(options_.tensors.size(), 0),
      versions_(options_.job.chunks_size(), 0),
      missing_tensors_(batching_.batches.size(), 0),
      pushed_elements_(options_.tensors.size(), 0),
      storing_(batching_.batches.size(), false),
      kept_(batching_.batches.size()),
      to_store_(batching_.batches.size(), false),
      trace_(options_.trace, options_.task, NamesOf(options_, batching_)),
      examples_(batching_.batches.size(), 0),
      hyperparameters_(batching_.batches.size()),
      connections_(ConnectionOptions(options_), this) {
  // A server's batches are dealt to its connections round-robin.
  std::vector<int> batches_of_server(options_.job.servers_size(), 0);
  for (const ChunkBatch& batch : batching_.batches) {
    const int turn = batches_of_server[batch.server]++ % options_.connections_per_server;
    connection_of_batch_.push_back(connections_.IndexOf(batch.server, turn));
  }
  counters_.staleness.assign(kStalenessBuckets, 0);
  AddTables();
  connections_.Start();
}

PsClient::~PsClient() {
  MutexLock lock(mu_);
  stop_ = true;
}

void PsClient::Start(const v1::Plan& plan) {
  MutexLock lock(mu_);
  machine_.Start(plan);
}

float* PsClient::Gradient(uint32_t chunk) const {
  const v1::ChunkPlacement& placement = options_.job.chunks(chunk);
  return options_.memory->Gradient(placement.tensor(), placement.offset());
}

v1::Codec PsClient::CodecOf(uint32_t chunk) const {
  return options_.encoder == nullptr ? v1::NONE : options_.encoder->codec(chunk);
}

void PsClient::EncodeBatch(const ChunkBatch& batch, int64_t step, bool compress) {
  if (options_.encoder == nullptr) return;
  for (uint32_t chunk : batch.chunks) {
    if (!IsAbsent(chunk)) options_.encoder->EncodeChunk(chunk, Gradient(chunk), step, compress);
  }
}

ByteSpan PsClient::EncodedGradient(uint32_t chunk) const {
  if (IsAbsent(chunk)) return {};
  if (CodecOf(chunk) == v1::NONE) return BytesOf(Gradient(chunk), options_.job.chunks(chunk).length());
  return options_.encoder->Encoded(chunk);
}

void PsClient::AddGradients(const ChunkBatch& batch, const SharedMemoryLink* memory, v1::ExchangeRequest* header,
                            std::vector<grpc::Slice>* payload) {
  bool shared = memory != nullptr;
  for (size_t i = 0; shared && i < batch.chunks.size(); ++i) {
    const ByteSpan gradient = EncodedGradient(batch.chunks[i]);
    if (gradient.empty()) {
      header->add_shared();
      continue;
    }
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
    if (!shared && !gradient.empty())
      payload->emplace_back(gradient.data(), gradient.size(), grpc::Slice::STATIC_SLICE);
  }
}

void PsClient::Send(const StepMachine::Request& request) {
  // What the next forward needs first goes first: rows, its input. Sent again when there is a connection.
  connections_.Send(
      connection_of_batch_[request.batch], HasRows(request.batch) ? -1 : request.batch,
      [&](const SharedMemoryLink* memory) ABSL_NO_THREAD_SAFETY_ANALYSIS { return MakeRequest(request, memory); },
      sends_together_);
}

void PsClient::QueuePushes(const std::vector<int>& batches) {
  sends_together_ = true;
  for (int batch : batches) machine_.Push(batch);
  sends_together_ = false;
}

void PsClient::SendQueued() {
  QueuePushes(std::exchange(waits_for_rows_, {}));
  connections_.FlushAll();
}

void PsClient::DescribePush(const StepMachine::Request& request, v1::PushPull* push) {
  const bool empty = examples_[request.batch] == 0;
  push->set_step(request.step);
  push->set_examples(examples_[request.batch]);
  push->set_epoch(epoch_);
  if (slice_.shard() != 0) *push->mutable_slice() = slice_;
  for (const v1::GroupHyperparameters& group : hyperparameters_[request.batch]) *push->add_groups() = group;
  for (uint32_t chunk : batching_.batches[request.batch].chunks) {
    v1::ChunkUpdate* update = push->add_chunks();
    update->set_chunk(chunk);
    update->set_base_version(versions_[chunk]);
    update->set_length(options_.job.chunks(chunk).length());
    if (empty || HasRows(request.batch)) continue;
    if (IsAbsent(chunk)) {
      update->set_absent(true);
    } else if (CodecOf(chunk) != v1::NONE) {
      update->set_codec(CodecOf(chunk));
      update->set_encoded_bytes(EncodedGradient(chunk).size());
    }
  }
}

grpc::ByteBuffer PsClient::MakeRequest(const StepMachine::Request& request, const SharedMemoryLink* memory) {
  const ChunkBatch& batch = batching_.batches[request.batch];
  v1::ExchangeRequest& header = request_header_;
  header.Clear();
  header.set_request_id(request.id);
  *header.mutable_task() = options_.task;
  header.set_job_fingerprint(options_.job.fingerprint());
  header.set_generation(request.generation);
  header.set_partition(batch.partition);
  if (memory != nullptr) header.set_shared_session(memory->session());
  std::vector<grpc::Slice> payload;
  if (request.kind == StepMachine::Kind::kPull) {
    header.mutable_pull()->set_step(request.step);
    for (uint32_t chunk : batch.chunks) header.mutable_pull()->add_chunks(chunk);
  } else {
    DescribePush(request, header.mutable_push_pull());
  }
  if (HasRows(request.batch)) {
    AddRows(request.batch, memory, &header, &payload);
  } else if (header.has_push_pull() && examples_[request.batch] != 0) {
    AddGradients(batch, memory, &header, &payload);
  }
  trace_.OnSend(request.batch, request.kind == StepMachine::Kind::kPull ? -1 : request.step, options_.clock->Now());
  return EncodeRequest(header, std::move(payload));
}

void PsClient::OnConnected(int connection) {
  MutexLock lock(mu_);
  if (stop_) return;
  for (size_t batch = 0; batch < connection_of_batch_.size(); ++batch) {
    if (connection_of_batch_[batch] == connection && !storing_[batch]) machine_.Resend(static_cast<int>(batch));
  }
}

void PsClient::OnUnreachable(absl::Status status) {
  MutexLock lock(mu_);
  Fail(std::move(status));
}

std::vector<bool> PsClient::AwaitsAnswer() {
  std::vector<bool> awaits(options_.job.servers_size() * options_.connections_per_server, false);
  MutexLock lock(mu_);
  for (size_t batch = 0; batch < connection_of_batch_.size(); ++batch) {
    if (machine_.HasOpen(static_cast<int>(batch))) awaits[connection_of_batch_[batch]] = true;
  }
  return awaits;
}

void PsClient::Fail(absl::Status status) {
  if (failed_.ok()) failed_ = std::move(status);
  changed_.NotifyAll();
}

void PsClient::Cancel(absl::Status status) {
  MutexLock lock(mu_);
  Fail(std::move(status));
}

Parameters::Step PsClient::next_step() {
  MutexLock lock(mu_);
  return {machine_.generation(), machine_.step(), machine_.plan()};
}

std::vector<int64_t> PsClient::Versions(int tensor) {
  MutexLock lock(mu_);
  std::vector<int64_t> versions;
  for (const PartOfTensor& part : batching_.parts_of_tensor[tensor]) {
    for (uint32_t chunk : batching_.batches[part.batch].chunks) {
      if (static_cast<int>(options_.job.chunks(static_cast<int>(chunk)).tensor()) == tensor) {
        versions.push_back(versions_[chunk]);
      }
    }
  }
  return versions;
}

bool PsClient::moved() {
  MutexLock lock(mu_);
  return machine_.moved();
}

void PsClient::Restart() {
  MutexLock lock(mu_);
  if (!machine_.moved()) return;
  // What has come for the step that is abandoned is asked for again.
  for (int batch = 0; batch < static_cast<int>(to_store_.size()); ++batch) {
    if (!machine_.Have(batch)) to_store_[batch] = false;
  }
  machine_.Restart();
}

absl::StatusOr<bool> PsClient::BeginStep(Step* step) {
  {
    MutexLock lock(mu_);
    RUBATO_RETURN_IF_ERROR(
        AwaitLocked([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return machine_.moved() || machine_.complete(); }));
    if (machine_.moved()) return false;
  }
  // Nothing is in flight, and nobody else writes there.
  if (options_.keep_weights) RUBATO_RETURN_IF_ERROR(StoreKept());
  MutexLock lock(mu_);
  if (machine_.moved()) return false;
  lets_go_ = false;
  *step = {machine_.generation(), machine_.step(), machine_.plan()};
  compress_ = !step->plan.uncompressed();
  if (step_staleness_ >= 0) {
    ++counters_.staleness[std::min<size_t>(step_staleness_, kStalenessBuckets - 1)];
    step_staleness_ = -1;
  }
  if (machine_.generation() != machine_.current_generation()) counters_.entry_wait = step_wait_;
  step_wait_ = absl::ZeroDuration();
  machine_.BeginStep();
  ForgetRows();
  std::fill(pushed_elements_.begin(), pushed_elements_.end(), 0);
  missing_pushes_ = {.tensors = options_.tensors.size(), .tables = tables_.size()};
  for (size_t b = 0; b < missing_tensors_.size(); ++b) {
    missing_tensors_[b] = static_cast<int>(batching_.tensors_of_batch[b].size());
    examples_[b] = kNoneYet;
    hyperparameters_[b].clear();
  }
  return true;
}

std::vector<int> PsClient::Prepare(int tensor, int64_t elements, const Pushed& pushed) {
  std::vector<int> due, full;
  int64_t step = 0;
  bool compress = true;
  {
    MutexLock lock(mu_);
    epoch_ = pushed.epoch;
    slice_ = pushed.slice;
    absent_[tensor] = pushed.absent;
    step = machine_.current_step();
    compress = compress_;
    const int64_t before = std::exchange(pushed_elements_[tensor], elements);
    for (const auto& [batch, begin, end] : batching_.parts_of_tensor[tensor]) {
      if (end <= before || end > elements) continue;
      // One empty tensor makes the batch empty; absent ones do if all of them are.
      if (!pushed.absent) examples_[batch] = std::min(examples_[batch], pushed.examples);
      if (pushed.hyperparameters != nullptr) AddHyperparameters(batch, *pushed.hyperparameters);
      if (--missing_tensors_[batch] > 0) continue;
      if (examples_[batch] == kNoneYet) examples_[batch] = 0;
      // The server may overwrite them once it has the push.
      kept_[batch] = nullptr;
      due.push_back(batch);
      if (examples_[batch] > 0) full.push_back(batch);
    }
  }
  for (int batch : full) EncodeBatch(batching_.batches[batch], step, compress);
  return due;
}

void PsClient::PushElements(int tensor, int64_t elements, const Pushed& pushed) {
  const std::vector<int> due = Prepare(tensor, elements, pushed);
  MutexLock lock(mu_);
  for (int batch : due) machine_.Push(batch);
}

void PsClient::PushTensor(int tensor, const Pushed& pushed) {
  std::vector<int> due = Prepare(tensor, kAllElements, pushed);
  MutexLock lock(mu_);
  if (--missing_pushes_.tensors == 0 && missing_pushes_.tables > 0 && AreSmall(due)) {
    waits_for_rows_ = std::move(due);
  } else {
    for (int batch : due) machine_.Push(batch);
  }
}

bool PsClient::AreSmall(const std::vector<int>& batches) const {
  int64_t bytes = 0;
  for (int batch : batches) bytes += batching_.batches[batch].bytes;
  return bytes <= kWithRowsBytesMax;
}

void PsClient::AddHyperparameters(int batch, const v1::GroupHyperparameters& added) {
  for (v1::GroupHyperparameters& group : hyperparameters_[batch]) {
    if (group.group() != added.group()) continue;
    group = added;
    return;
  }
  hyperparameters_[batch].push_back(added);
}

PsClient::Counters PsClient::counters() {
  MutexLock lock(mu_);
  Counters counters = counters_;
  counters.waiting = std::max(options_.clock->Now() - waits_since_, absl::ZeroDuration());
  return counters;
}

}  // namespace rubato::worker
