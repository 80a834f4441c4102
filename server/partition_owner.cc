#include "server/partition_owner.h"

#include <sched.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/wire/exchange_codec.h"
#include "kernels/optimizer/encoded_gradient.h"
#include "kernels/optimizer/gradient_crc.h"

namespace rubato::server {
namespace {

// That this process may use. All there are if that is not known.
int NumCores() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : CPU_SETSIZE;
}

// Memory that tasks on this host can read, as long as there is some.
ChunkStore::Allocator AllocateIn(std::shared_ptr<SharedArena> arena) {
  if (arena == nullptr) return FloatBuffer::Allocate;
  return [arena = std::move(arena)](int64_t size) {
    void* memory = arena->Allocate(size * sizeof(float));
    return memory == nullptr ? FloatBuffer::Allocate(size)
                             : FloatBuffer::Wrap(static_cast<float*>(memory), size, arena);
  };
}

std::vector<uint32_t> ChunksOfTensors(const v1::JobDescription& job, const std::vector<uint32_t>& chunks) {
  std::vector<uint32_t> tensors;
  for (uint32_t chunk : chunks) {
    if (!IsShard(job.chunks(static_cast<int>(chunk)))) tensors.push_back(chunk);
  }
  return tensors;
}

// Pushes to the same chunks of tensors have the same kind: their first chunk.
std::optional<uint32_t> KindOf(const PartitionOwner::Incoming& incoming) {
  const PartitionRequest& request = incoming.request;
  const bool pushes = request.kind == PartitionRequest::Kind::kPushPull && !request.chunks.empty();
  return pushes && !incoming.assigns && incoming.table == nullptr ? std::optional(request.chunks.front())
                                                                  : std::nullopt;
}

int64_t StalenessLimit(const v1::JobConfig& config) {
  const v1::CompensationConfig& compensation = config.consistency().compensation();
  return compensation.has_ringmaster() ? compensation.ringmaster().threshold() : ChunkRules::kNoStalenessLimit;
}

}  // namespace

PartitionOwner::PartitionOwner(Options options)
    : options_(std::move(options)),
      tensors_(ChunksOfTensors(*options_.job, options_.chunks)),
      store_(*options_.config, *options_.model, *options_.job, tensors_, AllocateIn(options_.arena), options_.slots),
      partition_(options_.chunks, options_.timeout, this, StalenessLimit(*options_.config)),
      leases_(options_.session_lives),
      trace_(options_.trace, options_.clock, options_.partition, options_.model, options_.job),
      serving_thread_(NumCores(), static_cast<int>(options_.config->cluster().partitions_per_server())),
      queue_(options_.clock, [this](absl::Time now) {
        partition_.OnTick(now);
        leases_.DropDead();
      }) {
  // Rows of tables begin with what the config says.
  if (options_.awaits_weights) assignment_.Await(tensors_);
}

PartitionOwner::~PartitionOwner() {
  queue_.Stop();
  if (options_.log != nullptr) CheckLog(options_.log->Flush());
}

void PartitionOwner::Submit(Incoming incoming) {
  if (serving_thread_.IsCallers({incoming.gradient_bytes, incoming.in_shared_memory, incoming.table != nullptr})) {
    if (queue_.TryRun([&] { Handle(std::move(incoming)); })) return;
  }
  const std::optional<uint32_t> kind = KindOf(incoming);
  queue_.Post([this, incoming = std::make_shared<Incoming>(std::move(incoming))] { Handle(std::move(*incoming)); },
              kind);
}

void PartitionOwner::Post(std::function<void()> work) {
  queue_.Post([this, work = std::move(work)] {
    AnswerNow(held_.TakeAll());
    work();
  });
}

void PartitionOwner::Handle(Incoming incoming) {
  if (incoming.assigns) return HandleAssign(incoming);
  const absl::Time begun = trace_.Now();
  PartitionRequest& request = incoming.request;
  const std::optional<uint32_t> kind = KindOf(incoming);
  // The answer to what the worker asked before must not lend it these chunks after the answer to this.
  if (held_.Concern(request.task, request.chunks)) AnswerNow(held_.TakeAll());
  if (incoming.shared_session != 0) leases_.TakeBack(incoming.shared_session, request.task, request.chunks);
  counts_.set_received_bytes_total(counts_.received_bytes_total() + static_cast<int64_t>(incoming.gradient_bytes));
  const uint64_t token = ++last_token_;
  request.token = token;
  const absl::Time now = options_.clock->Now();
  open_[token] = {std::move(incoming.connection),
                  incoming.request_id,
                  incoming.message_bytes,
                  request.task,
                  request.chunks,
                  incoming.shared_session,
                  trace_.Received(request, incoming.arrived, begun),
                  now,
                  incoming.slot,
                  {},
                  std::move(incoming.table)};
  handled_token_ = token;
  partition_.OnRequest(std::move(request), now);
  FinishTables();
  handled_token_ = 0;
  if (!kind.has_value() || held_.empty()) return;
  if (held_.IsFull(*kind) || queue_.MoreOf(*kind) == 0) AnswerNow(held_.Take(*kind));
}

void PartitionOwner::HandleAssign(const Incoming& incoming) {
  const PartitionRequest& request = incoming.request;
  const Assignment::Answer answer = incoming.slot > 0 ? assignment_.OnAssignState(request.task, request.chunks)
                                                      : assignment_.OnAssign(request.task, request.chunks);
  for (size_t i = 0; i < request.chunks.size(); ++i) {
    if (std::find(answer.taken.begin(), answer.taken.end(), request.chunks[i]) == answer.taken.end()) continue;
    const EncodedGradient& values = *request.contributions[i].gradient;
    if (incoming.slot > 0) {
      store_.AssignSlot(request.chunks[i], incoming.slot - 1, values);
    } else {
      store_.Assign(request.chunks[i], values,
                    incoming.updates.empty() ? std::nullopt : std::optional(incoming.updates[i]));
    }
  }
  if (assignment_.complete()) {
    for (const auto& done : std::exchange(snapshots_, {})) done(KeepAll());
  }
  v1::ExchangeReply header;
  header.set_request_id(incoming.request_id);
  header.set_outcome(answer.outcome);
  header.set_message(answer.message);
  incoming.connection->Release(incoming.message_bytes);
  incoming.connection->Send(EncodeReply(header, {}), 0);
}

void PartitionOwner::NameAssigner(v1::TaskId worker) {
  Post([this, worker = std::move(worker)] { assignment_.Name(worker); });
}

void PartitionOwner::OnClosed(uint64_t connection_id) {
  Post([this, connection_id] {
    absl::erase_if(open_, [&](const auto& entry) {
      if (entry.second.connection->id() != connection_id) return false;
      partition_.Forget(entry.first);
      return true;
    });
  });
}

void PartitionOwner::Announce(uint64_t generation, std::function<void(int64_t)> done) {
  Post([this, generation, done = std::move(done)] { done(partition_.Announce(generation)); });
}

void PartitionOwner::Abort(uint64_t generation) {
  Post([this, generation] {
    partition_.Abort(generation, options_.clock->Now());
    FinishTables();
  });
}

void PartitionOwner::Commit(v1::Plan plan, std::function<void(std::vector<v1::LostWorker>)> done) {
  Post([this, plan = std::move(plan), done = std::move(done)] {
    partition_.Commit(plan, options_.clock->Now());
    serving_thread_.set_workers(plan.members_size());
    FinishTables();
    if (partition_.plan().cut().id() != cut_) captured_.clear();  // Given up.
    if (store_.keeps_pulled()) store_.KeepPulledOf(partition_.plan());
    // A crash later must not take the record of the plan with it.
    if (options_.log != nullptr) CheckLog(options_.log->Flush());
    done(partition_.Lost());
  });
}

void PartitionOwner::FinishRestore(const CheckpointRestorer& restorer, size_t first, bool versions) {
  store_.FinishRestore(tensors_, restorer, first);
  if (!versions) return;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    partition_.Restore(tensors_[i], restorer.slices()[first + i].version);
  }
  for (uint32_t chunk : options_.chunks) {
    if (options_.tables->Has(chunk)) partition_.Restore(chunk, options_.tables->RestoredVersion(chunk));
  }
}

ChunkSnapshot PartitionOwner::Keep(uint32_t chunk) {
  const ChunkRules& rules = *partition_.Find(chunk);
  const auto add_rules = [&rules](auto* record) {
    record->set_version(rules.version());
    for (const PushDeduper::Watermark& mark : rules.deduper().Watermarks()) {
      v1::Watermark* watermark = record->add_watermarks();
      watermark->set_worker(mark.worker);
      watermark->set_incarnation(mark.incarnation);
      watermark->set_step(mark.step);
    }
  };
  ChunkSnapshot snapshot;
  if (options_.tables->Has(chunk)) {
    FinishTables();
    const std::shared_ptr<ShardSnapshot> shard = options_.tables->Keep(chunk);
    add_rules(&shard->record);
    snapshot.shard = shard;
  } else {
    snapshot = store_.Keep(chunk);
    add_rules(&snapshot.record);
  }
  return snapshot;
}

std::vector<ChunkSnapshot> PartitionOwner::KeepAll() {
  std::vector<ChunkSnapshot> chunks;
  for (uint32_t chunk : options_.chunks) chunks.push_back(Keep(chunk));
  if (options_.log != nullptr) CheckLog(options_.log->Flush());
  return chunks;
}

void PartitionOwner::Snapshot(std::function<void(std::vector<ChunkSnapshot>)> done) {
  Post([this, done = std::move(done)] {
    if (assignment_.complete()) return done(KeepAll());
    snapshots_.push_back(done);
  });
}

void PartitionOwner::Describe(std::function<void(PartitionProgress)> done) {
  Post([this, done = std::move(done)] {
    PartitionProgress progress;
    progress.counts = counts_;
    const TableStore::Counts tables = options_.tables->counts();
    progress.counts.set_memory_bytes(store_.memory_bytes() + tables.memory_bytes);
    progress.counts.set_table_rows(tables.rows);
    progress.counts.set_table_bytes(tables.memory_bytes);
    progress.counts.set_rows_applied_total(tables.applied);
    progress.counts.set_rows_removed_total(tables.removed);
    progress.counts.set_rows_not_admitted_total(tables.not_admitted);
    *progress.counts.mutable_gradient_moments() = store_.gradient_moments();
    progress.counts.set_queue_length(static_cast<int64_t>(queue_.length()));
    partition_.Describe(&progress.counts);
    progress.held = partition_.HeldStarts();
    done(std::move(progress));
  });
}

bool PartitionOwner::IsFinite(uint32_t chunk, const Contribution& contribution) {
  // Of a mean everything passes, so that clients see what they have computed.
  if (contribution.gradient == nullptr || store_.is_mean()) return true;
  if (options_.tables->Has(chunk)) return rubato::IsFinite(*contribution.gradient, 0);  // As long as its pieces are.
  return rubato::IsFinite(*contribution.gradient, store_.Get(chunk).placement.length());
}

void PartitionOwner::Apply(const ChunkRules::Update& update) {
  if (failed_) return;
  const absl::Time begun = trace_.Now();
  if (options_.tables->Has(update.chunk)) {
    CheckTables(options_.tables->Apply(update));
    // A trace says of each shard how long its own update took.
    if (begun != absl::InfinitePast()) FinishTables();
    if (failed_) return;
  } else if (store_.Apply(update)) {
    NoteDisagreement(update.chunk);
  }
  trace_.Applied(update, begun);
  counts_.set_updates_total(counts_.updates_total() + 1);
}

void PartitionOwner::CheckTables(const absl::Status& status) {
  if (status.ok() || failed_) return;
  // Until the server has ended nothing more is applied or answered.
  failed_ = true;
  if (options_.on_failure) options_.on_failure(status);
}

void PartitionOwner::FinishTables() {
  if (!failed_) CheckTables(options_.tables->Finish());
}

std::optional<uint32_t> PartitionOwner::GradientCrc(const Contribution& contribution) {
  if (contribution.gradient == nullptr) return std::nullopt;
  return rubato::GradientCrc(*contribution.gradient);
}

void PartitionOwner::NoteDisagreement(uint32_t chunk) {
  counts_.set_hyperparameter_disagreements_total(counts_.hyperparameter_disagreements_total() + 1);
  if (std::exchange(told_disagreement_, true)) return;
  const ChunkStore::Chunk& stored = store_.Get(chunk);
  options_.logger->Warning(absl::StrCat(
      "workers push with different hyperparameters of group ", stored.tensor.group, " (", stored.tensor.name,
      "); in each step those of the one with the lowest index are taken. Said once by partition ", options_.partition));
}

void PartitionOwner::Capture(uint64_t token, uint32_t chunk) {
  Open& open = open_.at(token);
  if (options_.tables->Has(chunk)) return;  // Rows are read when the answer is made, before anything else is applied.
  const ChunkStore::Chunk& stored = store_.Get(chunk);
  open.captured[chunk] = {.buffer = open.slot == 0 ? stored.weights : stored.slots[open.slot - 1],
                          .version = partition_.Find(chunk)->version(),
                          .updates = stored.updates};
}

void PartitionOwner::CaptureCut(const v1::Cut& cut, uint32_t chunk) {
  if (cut.id() != cut_) captured_.clear();
  cut_ = cut.id();
  captured_.push_back(Keep(chunk));
  if (!partition_.cut_complete()) return;
  // What is in the cut is in the log.
  if (options_.log != nullptr) CheckLog(options_.log->Flush());
  if (options_.on_cut) options_.on_cut(partition_.plan(), std::exchange(captured_, {}));
}

void PartitionOwner::Log(const v1::UpdateLogRecord& record) { CheckLog(options_.log->Append(record)); }

void PartitionOwner::CheckLog(const absl::Status& status) {
  if (status.ok() || log_failed_) return;
  log_failed_ = true;
  options_.logger->Error(
      absl::StrCat("the update log of partition ", options_.partition, " ends here: ", status.message()));
}

void PartitionOwner::CountAnswer(const PartitionReply& reply, const Open& open, bool waited) {
  const v1::ExchangeReply::PushOutcome push = reply.push;
  if (push == v1::ExchangeReply::PUSH_DUPLICATE) counts_.set_duplicates_total(counts_.duplicates_total() + 1);
  if (push == v1::ExchangeReply::PUSH_DROPPED) counts_.set_dropped_total(counts_.dropped_total() + 1);
  if (push == v1::ExchangeReply::PUSH_NON_FINITE) counts_.set_non_finite_total(counts_.non_finite_total() + 1);
  if (push != v1::ExchangeReply::PUSH_NONE && push != v1::ExchangeReply::PUSH_PENDING) {
    counts_.set_pushes_total(counts_.pushes_total() + 1);
  }
  if (reply.outcome == v1::ExchangeReply::OK) counts_.set_pulls_total(counts_.pulls_total() + 1);
  if (!waited) return;
  counts_.set_waits_total(counts_.waits_total() + 1);
  counts_.set_wait_seconds_total(counts_.wait_seconds_total() +
                                 absl::ToDoubleSeconds(options_.clock->Now() - open.since));
}

void PartitionOwner::LogServed(const PartitionReply& reply, const v1::TaskId& task) {
  v1::UpdateLogRecord record;
  v1::ServedRecord& served = *record.mutable_served();
  served.set_worker(task.index());
  served.set_incarnation(task.incarnation());
  served.set_step(reply.begun_step);
  for (uint32_t chunk : reply.chunks) {
    served.add_chunks(chunk);
    served.add_versions(partition_.Find(chunk)->version());
  }
  Log(record);
}

bool PartitionOwner::IsToBeHeld(const PartitionReply& reply) const {
  // An answer of SYNC carries the weights of its step.
  const v1::Plan& plan = partition_.plan();
  const bool may_be_newer = plan.mode() != v1::SYNC && reply.begun_step >= plan.first_step();
  return may_be_newer && reply.outcome == v1::ExchangeReply::OK && reply.token == handled_token_ &&
         queue_.MoreOf(reply.chunks.front()) > 0;
}

void PartitionOwner::Answer(const PartitionReply& reply) {
  if (IsToBeHeld(reply)) {
    held_.Hold(open_.at(reply.token).task, reply);
  } else {
    AnswerNow(reply, reply.token != handled_token_);
  }
}

void PartitionOwner::AnswerNow(const std::vector<PartitionReply>& replies) {
  for (const PartitionReply& reply : replies) AnswerNow(reply, /*waited=*/false);
}

void PartitionOwner::AnswerNow(const PartitionReply& reply, bool waited) {
  FinishTables();
  if (failed_) return;
  auto node = open_.extract(reply.token);
  if (node.empty()) return;
  const absl::Time begun = trace_.Now();
  Open& open = node.mapped();
  CountAnswer(reply, open, waited);
  if (options_.log != nullptr && reply.begun_step >= 0) LogServed(reply, open.task);
  v1::ExchangeReply& header = reply_header_;
  header.Clear();
  header.set_request_id(open.request_id);
  header.set_outcome(reply.outcome);
  header.set_push(reply.push);
  header.set_message(reply.message);
  header.set_next_step(reply.next_step);
  if (reply.outcome == v1::ExchangeReply::MOVED) *header.mutable_plan() = reply.plan;
  for (const v1::TaskId& task : reply.waiting_for) *header.add_waiting_for() = task;
  std::vector<grpc::Slice> payload;
  if (open.table == nullptr) {
    AddWeights(reply, open, &header, &payload);
  } else if (reply.outcome == v1::ExchangeReply::OK) {
    AddRows(reply, open, &header, &payload);
  }
  // What the next forward needs first goes first: rows, as they are its input.
  int64_t priority = 0;
  if (open.table != nullptr) {
    priority = -1;
  } else if (!open.chunks.empty()) {
    priority = open.chunks.front();
  }
  open.connection->Release(open.message_bytes);
  open.connection->Send(EncodeReply(header, std::move(payload)), priority);
  trace_.Answered(open.traced, reply.outcome, begun);
}

void PartitionOwner::AddWeights(const PartitionReply& reply, const Open& open, v1::ExchangeReply* header,
                                std::vector<grpc::Slice>* payload) {
  std::vector<ChunkStore::Wire> weights;
  for (size_t i = 0; i < reply.chunks.size(); ++i) {
    const uint32_t chunk = reply.chunks[i];
    v1::ChunkWeights* entry = header->add_chunks();
    int64_t version = partition_.Find(chunk)->version();
    if (auto it = open.captured.find(chunk); it != open.captured.end()) {
      const FloatBuffer::Ptr& buffer = it->second.buffer;
      version = it->second.version;
      if (open.slot > 0) entry->set_updates(it->second.updates);
      weights.push_back({v1::NONE, buffer, buffer->size() * static_cast<int64_t>(sizeof(float))});
    } else {
      weights.push_back(store_.ForWire(chunk, version));
      if (store_.keeps_pulled()) {
        store_.NotePulled(chunk, open.task, version, /*may_be_stale=*/partition_.plan().mode() != v1::SYNC);
      }
    }
    counts_.set_sent_bytes_total(counts_.sent_bytes_total() + weights.back().bytes);
    entry->set_chunk(chunk);
    entry->set_version(version);
    entry->set_length(store_.Get(chunk).placement.length());
    entry->set_applied_to_version(i < reply.applied_to.size() ? reply.applied_to[i] : -1);
    if (weights.back().codec != v1::NONE) {
      entry->set_codec(weights.back().codec);
      entry->set_encoded_bytes(weights.back().bytes);
    }
  }
  if (open.shared_session != 0 && Share(weights, open, header)) return;
  for (const ChunkStore::Wire& wire : weights)
    payload->push_back(SliceOf(wire.buffer, wire.buffer->data(), wire.bytes));
}

void PartitionOwner::AddRows(const PartitionReply& reply, const Open& open, v1::ExchangeReply* header,
                             std::vector<grpc::Slice>* payload) {
  for (size_t i = 0; i < reply.chunks.size(); ++i) {
    v1::ChunkWeights* entry = header->add_chunks();
    entry->set_chunk(reply.chunks[i]);
    entry->set_version(partition_.Find(reply.chunks[i])->version());
    entry->set_applied_to_version(i < reply.applied_to.size() ? reply.applied_to[i] : -1);
  }
  const TableMessage& table = *open.table;
  const size_t bytes = options_.tables->EncodedBytes(table.table, table.asked.size());
  if (bytes == 0) return;
  SharedBlocks* const blocks = open.shared_session != 0 ? options_.blocks.get() : nullptr;
  const std::shared_ptr<float[]> rows = ArrayIn<float>(blocks, (bytes + sizeof(float) - 1) / sizeof(float));
  options_.tables->LookupEncoded(table.table, table.asked, reinterpret_cast<uint8_t*>(rows.get()));
  std::optional<uint64_t> offset;
  if (blocks != nullptr) offset = blocks->region().OffsetOf(rows.get(), bytes);
  if (offset.has_value()) {
    v1::SharedSpan* span = header->add_shared();
    span->set_offset(*offset);
    span->set_bytes(bytes);
    leases_.Lend(open.shared_session, header->chunks(0).chunk(), rows);
  } else {
    payload->push_back(SliceOf(rows, rows.get(), bytes));
  }
  counts_.set_sent_bytes_total(counts_.sent_bytes_total() + static_cast<int64_t>(bytes));
  counts_.set_rows_sent_total(counts_.rows_sent_total() + static_cast<int64_t>(table.asked.size()));
}

bool PartitionOwner::Share(const std::vector<ChunkStore::Wire>& weights, const Open& open, v1::ExchangeReply* header) {
  for (const ChunkStore::Wire& wire : weights) {
    std::optional<uint64_t> offset;
    if (options_.arena != nullptr) offset = options_.arena->region().OffsetOf(wire.buffer->data(), wire.bytes);
    if (!offset.has_value()) {
      header->clear_shared();
      return false;
    }
    v1::SharedSpan* span = header->add_shared();
    span->set_offset(*offset);
    span->set_bytes(wire.bytes);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    leases_.Lend(open.shared_session, header->chunks(static_cast<int>(i)).chunk(), weights[i].buffer);
  }
  return true;
}

}  // namespace rubato::server
