// How a PsClient takes what servers answer.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/task.h"
#include "worker/ps_client/not_finite.h"
#include "worker/ps_client/ps_client.h"

namespace rubato::worker {

void PsClient::OnMessages(int connection, std::vector<grpc::ByteBuffer> messages,
                          std::shared_ptr<const SharedMemoryLink> memory) {
  const absl::Time came = options_.clock->Now();
  thread_local std::vector<DecodedReply> replies;  // Their headers' memory is used again.
  if (replies.size() < messages.size()) replies.resize(messages.size());
  const absl::Cleanup let_go = [&] {
    for (size_t i = 0; i < messages.size(); ++i) replies[i].payload = PayloadView();
  };
  std::vector<absl::Status> decoded;
  for (size_t i = 0; i < messages.size(); ++i) decoded.push_back(DecodeReply(messages[i], &replies[i]));
  // The lock is taken once for some of them, and not for each: the trainer has it while it pushes.
  std::vector<Arrival> arrivals;
  size_t next = 0;
  for (bool more = true; more;) {
    bool wakes = false;
    {
      MutexLock lock(mu_);
      for (Arrival& arrival : arrivals) EndStore(connection, memory, came, &arrival);
      wakes = untold_bytes_ >= kToldAfterBytes;
      arrivals.clear();
      for (int64_t bytes = 0; next < messages.size() && bytes < kToldAfterBytes; ++next) {
        bytes += BeginStore(connection, decoded[next], replies[next], memory.get(), &arrivals);
      }
    }
    more = !arrivals.empty() || next < messages.size();
    if (wakes && more) WakeTrainer();
    for (Arrival& arrival : arrivals) {
      if (arrival.stores) arrival.stored = Store(arrival.batch, arrival.weights);
    }
  }
  WakeTrainer();
}

void PsClient::FailOn(int connection, const absl::Status& status) {
  Fail(Annotate(status, absl::StrCat("answer of ", connections_.name(connection))));
}

int64_t PsClient::BeginStore(int connection, const absl::Status& decoded, const DecodedReply& reply,
                             const SharedMemoryLink* memory, std::vector<Arrival>* arrivals) {
  if (!decoded.ok()) {
    FailOn(connection, decoded);
    return 0;
  }
  if (stop_) return 0;
  const int batch = machine_.BatchOf(reply.header.request_id());
  if (batch < 0 || connection_of_batch_[batch] != connection || storing_[batch]) return 0;
  if (reply.header.outcome() != v1::ExchangeReply::OK) {
    TakeReply(batch, reply.header);
    return 0;
  }
  const SharedRegion* region = memory == nullptr ? nullptr : &memory->peer();
  if (HasRows(batch)) {
    if (absl::Status taken = TakeRows(batch, reply, region); !taken.ok()) {
      FailOn(connection, taken);
      return 0;
    }
    trace_.OnEnd(batch);
    TakeReply(batch, reply.header);
    return 0;
  }
  absl::StatusOr<std::vector<ArrivedWeights>> found =
      FindWeights(options_.job, batching_.batches[batch], reply, region);
  if (!found.ok()) {
    FailOn(connection, found.status());
    return 0;
  }
  storing_[batch] = true;
  Arrival& arrival = arrivals->emplace_back();
  arrival.batch = batch;
  arrival.header = &reply.header;
  arrival.weights = *std::move(found);
  for (const ArrivedWeights& entry : arrival.weights) arrival.bytes += static_cast<int64_t>(entry.bytes);
  arrival.stores = !options_.keep_weights || lets_go_;
  return arrival.bytes;
}

absl::Status PsClient::Store(int batch, const std::vector<ArrivedWeights>& weights) {
  for (size_t i = 0; i < weights.size(); ++i) {
    const v1::ChunkPlacement& placement = options_.job.chunks(batching_.batches[batch].chunks[i]);
    float* const place = options_.memory->Weights(placement.tensor(), placement.offset());
    RUBATO_RETURN_IF_ERROR(DecodeWeights(weights[i], placement.length(), is_large_model_, place));
  }
  return absl::OkStatus();
}

void PsClient::EndStore(int connection, const std::shared_ptr<const SharedMemoryLink>& memory, absl::Time came,
                        Arrival* arrival) {
  const int batch = arrival->batch;
  storing_[batch] = false;
  if (stop_) return;
  if (!arrival->stored.ok()) return FailOn(connection, arrival->stored);
  counters_.received_bytes += arrival->bytes;
  if (trace_.enabled()) Trace(batch, arrival->bytes, came);
  trace_.OnEnd(batch);
  TakeReply(batch, *arrival->header);
  // Otherwise the step has moved, and they are asked for again.
  if (options_.keep_weights && machine_.Have(batch)) {
    kept_[batch] = std::make_shared<KeptWeights>(KeptWeights{std::move(arrival->weights), memory});
    to_store_[batch] = !arrival->stores;
  }
  untold_bytes_ += arrival->bytes;
}

void PsClient::Trace(int batch, int64_t received_bytes, absl::Time arrived) {
  const std::vector<uint32_t>& chunks = batching_.batches[batch].chunks;
  ExchangeTrace::Stored stored = {
      .arrived = arrived, .stored = options_.clock->Now(), .step = machine_.step(), .received_bytes = received_bytes};
  if (examples_[batch] != 0) {
    for (uint32_t chunk : chunks) stored.sent_bytes += static_cast<int64_t>(EncodedGradient(chunk).size());
  }
  trace_.Record(batch, chunks, stored);
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
      return Fail(
          NotFiniteError(absl::StrCat(TaskName(options_.task), ", step ", machine_.current_step(), ": the gradient of ",
                                      FirstOf(batch), " (or of what travels with it) is not finite")));
    }
  }
  if (reply.outcome() == v1::ExchangeReply::WAITING) {
    counters_.waiting_for = absl::StrCat("step ", machine_.step(), " ", reply.message(), " (", ServerOf(batch), ")");
  }
  if (absl::Status status = machine_.OnReply(reply.request_id(), reply); !status.ok()) {
    return Fail(Annotate(status, ServerOf(batch)));
  }
  if (HasRows(batch)) AskAgainIfNeeded(batch);
}

}  // namespace rubato::worker
