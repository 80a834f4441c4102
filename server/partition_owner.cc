#include "server/partition_owner.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/request_reader.h"

namespace rubato::server {
namespace {

// How often waiting requests are looked at.
constexpr absl::Duration kTick = absl::Milliseconds(50);

}  // namespace

PartitionOwner::PartitionOwner(Options options)
    : options_(std::move(options)),
      store_(*options_.config, *options_.model, *options_.job, options_.chunks),
      partition_(options_.chunks, options_.patience, this),
      thread_([this] { Run(); }) {}

PartitionOwner::~PartitionOwner() {
  {
    MutexLock lock(mu_);
    stop_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
  if (options_.log != nullptr) CheckLog(options_.log->Flush());
}

void PartitionOwner::Post(std::function<void()> work) {
  {
    MutexLock lock(mu_);
    work_.push_back(std::move(work));
  }
  wake_.NotifyOne();
}

void PartitionOwner::Run() {
  absl::Time next_tick = options_.clock->Now() + kTick;
  for (;;) {
    std::deque<std::function<void()>> batch;
    {
      MutexLock lock(mu_);
      if (work_.empty() && !stop_) wake_.WaitFor(mu_, kTick);
      if (stop_) return;
      batch.swap(work_);
    }
    for (std::function<void()>& work : batch) work();
    if (absl::Time now = options_.clock->Now(); now >= next_tick) {
      partition_.OnTick(now);
      next_tick = now + kTick;
    }
  }
}

void PartitionOwner::Submit(Incoming incoming) {
  Post([this, incoming = std::make_shared<Incoming>(std::move(incoming))] { Handle(std::move(*incoming)); });
}

void PartitionOwner::Handle(Incoming incoming) {
  AttachGradients(*options_.job, std::move(incoming.payload), &incoming.request);
  const uint64_t token = ++last_token_;
  incoming.request.token = token;
  open_[token] = {std::move(incoming.connection), incoming.request_id, incoming.request.chunks, {}};
  partition_.OnRequest(std::move(incoming.request), options_.clock->Now());
}

void PartitionOwner::Announce(uint64_t generation, std::function<void(int64_t)> done) {
  Post([this, generation, done = std::move(done)] { done(partition_.Announce(generation)); });
}

void PartitionOwner::Abort(uint64_t generation) {
  Post([this, generation] { partition_.Abort(generation, options_.clock->Now()); });
}

void PartitionOwner::Commit(v1::Plan plan, std::function<void()> done) {
  Post([this, plan = std::move(plan), done = std::move(done)] {
    partition_.Commit(plan, options_.clock->Now());
    // A crash later must not take the record of the plan with it.
    if (options_.log != nullptr) CheckLog(options_.log->Flush());
    done();
  });
}

void PartitionOwner::Snapshot(std::function<void(std::vector<ChunkSnapshot>)> done) {
  Post([this, done = std::move(done)] {
    std::vector<ChunkSnapshot> chunks;
    for (uint32_t index : options_.chunks) {
      const ChunkStore::Chunk& chunk = store_.Get(index);
      ChunkSnapshot entry;
      entry.record.set_chunk(index);
      entry.record.set_tensor(chunk.tensor.name);
      for (int64_t dimension : chunk.tensor.shape) entry.record.add_shape(dimension);
      entry.record.set_offset(chunk.placement.offset());
      entry.record.set_length(chunk.placement.length());
      entry.record.set_version(partition_.Find(index)->version());
      for (const PushDeduper::Watermark& mark : partition_.Find(index)->deduper().watermarks()) {
        v1::Watermark* watermark = entry.record.add_watermarks();
        watermark->set_worker(mark.worker);
        watermark->set_incarnation(mark.incarnation);
        watermark->set_step(mark.step);
      }
      entry.weights = chunk.weights;  // Updates leave it alone while it is held.
      for (const FloatBuffer::Ptr& slot : chunk.slots) {
        entry.slots.push_back(FloatBuffer::Allocate(slot->size()));
        std::copy_n(slot->data(), slot->size(), entry.slots.back()->data());
      }
      chunks.push_back(std::move(entry));
    }
    if (options_.log != nullptr) CheckLog(options_.log->Flush());
    done(std::move(chunks));
  });
}

void PartitionOwner::Describe(std::function<void(const v1::ServerProgress&)> done) {
  Post([this, done = std::move(done)] {
    v1::ServerProgress progress = counts_;
    progress.set_memory_bytes(store_.memory_bytes());
    partition_.Describe(&progress);
    done(progress);
  });
}

void PartitionOwner::Apply(const ChunkRules::Update& update) {
  store_.Apply(update);
  counts_.set_updates_total(counts_.updates_total() + 1);
}

void PartitionOwner::Capture(uint64_t token, uint32_t chunk) {
  open_.at(token).captured[chunk] = {store_.Get(chunk).weights, partition_.Find(chunk)->version()};
}

void PartitionOwner::Log(const v1::UpdateLogRecord& record) {
  if (options_.log != nullptr) CheckLog(options_.log->Append(record));
}

void PartitionOwner::CheckLog(const absl::Status& status) {
  if (status.ok() || log_failed_) return;
  log_failed_ = true;
  options_.logger->Error(
      absl::StrCat("the update log of partition ", options_.partition, " ends here: ", status.message()));
}

void PartitionOwner::Answer(const PartitionReply& reply) {
  auto node = open_.extract(reply.token);
  if (node.empty()) return;
  Open& open = node.mapped();
  if (reply.push == v1::ExchangeReply::PUSH_DUPLICATE) counts_.set_duplicates_total(counts_.duplicates_total() + 1);
  if (reply.push == v1::ExchangeReply::PUSH_DROPPED) counts_.set_dropped_total(counts_.dropped_total() + 1);
  if (reply.push == v1::ExchangeReply::PUSH_NON_FINITE) counts_.set_non_finite_total(counts_.non_finite_total() + 1);

  v1::ExchangeReply header;
  header.set_request_id(open.request_id);
  header.set_outcome(reply.outcome);
  header.set_push(reply.push);
  header.set_message(reply.message);
  header.set_next_step(reply.next_step);
  if (reply.outcome == v1::ExchangeReply::MOVED) *header.mutable_plan() = reply.plan;
  for (const v1::TaskId& task : reply.waiting_for) *header.add_waiting_for() = task;
  std::vector<grpc::Slice> payload;
  for (size_t i = 0; i < reply.chunks.size(); ++i) {
    const uint32_t chunk = reply.chunks[i];
    FloatBuffer::Ptr weights = store_.Get(chunk).weights;
    int64_t version = partition_.Find(chunk)->version();
    if (auto it = open.captured.find(chunk); it != open.captured.end()) std::tie(weights, version) = it->second;
    v1::ChunkWeights* entry = header.add_chunks();
    entry->set_chunk(chunk);
    entry->set_version(version);
    entry->set_length(weights->size());
    entry->set_applied_to_version(i < reply.applied_to.size() ? reply.applied_to[i] : -1);
    payload.push_back(SliceOf(weights, weights->data(), weights->size() * sizeof(float)));
  }
  open.connection->Send(EncodeReply(header, std::move(payload)));
}

}  // namespace rubato::server
