#include "worker/ps_client/snapshot_puller.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/status.h"
#include "common/table_keys.h"
#include "common/task.h"
#include "worker/ps_client/batching.h"

namespace rubato::worker {
namespace {

constexpr int kTries = 20;
// How far behind the furthest step that was late the next try asks.
constexpr int64_t kStepsAhead = 2;

}  // namespace

SnapshotPuller::SnapshotPuller(v1::JobDescription job, v1::TaskId task, const TaskSecurity* security,
                               int64_t message_bytes)
    : job_(std::move(job)), task_(std::move(task)) {
  for (const v1::ChunkPlacement& chunk : job_.chunks()) {
    if (IsShard(chunk)) break;
    tensors_ = std::max(tensors_, static_cast<int>(chunk.tensor()) + 1);
  }
  for (ChunkBatch& batch : MakeBatches(job_, tensors_, message_bytes).batches) {
    if (batch.table >= 0) continue;
    batches_.push_back({batch.server, batch.partition, std::move(batch.chunks)});
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  for (const v1::ServerInfo& server : job_.servers()) {
    stubs_.push_back(v1::ParameterServer::NewStub(
        OpenChannel(server.address(), Party::kServer, server.task().index(), security, arguments)));
  }
}

v1::ExchangeRequest SnapshotPuller::RequestFor(size_t batch, int64_t at_step, uint32_t slot) const {
  v1::ExchangeRequest request;
  request.set_request_id(batch + 1);
  *request.mutable_task() = task_;
  request.set_job_fingerprint(job_.fingerprint());
  request.set_partition(batches_[batch].partition);
  request.mutable_snapshot()->set_at_step(at_step);
  request.mutable_snapshot()->set_slot(slot);
  for (uint32_t chunk : batches_[batch].chunks) request.mutable_snapshot()->add_chunks(chunk);
  return request;
}

absl::Status SnapshotPuller::CheckReply(size_t batch, const Reply& reply) const {
  int64_t bytes = 0;
  bool same = reply.chunks_size() == static_cast<int>(batches_[batch].chunks.size());
  for (int i = 0; same && i < reply.chunks_size(); ++i) {
    same = reply.chunks(i).chunk() == batches_[batch].chunks[i];
    bytes += job_.chunks(batches_[batch].chunks[i]).length() * static_cast<int64_t>(sizeof(float));
  }
  if (same && static_cast<int64_t>(reply.payload().size()) == bytes) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the answer has ", reply.chunks_size(), " chunks and ",
                                          reply.payload().size(), " bytes, not the ", batches_[batch].chunks.size(),
                                          " chunks that were asked for"));
}

void SnapshotPuller::Cancel() {
  MutexLock lock(mu_);
  cancelled_ = true;
  for (const std::unique_ptr<Call>& call : calls_) call->context.TryCancel();
}

bool SnapshotPuller::cancelled() {
  MutexLock lock(mu_);
  return cancelled_;
}

std::vector<SnapshotPuller::Call*> SnapshotPuller::OpenCalls(absl::Duration timeout) {
  const auto deadline = std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout);
  std::vector<Call*> calls;
  MutexLock lock(mu_);
  calls_.clear();
  for (auto& stub : stubs_) {
    calls_.push_back(std::make_unique<Call>());
    Call* const call = calls_.back().get();
    call->context.set_deadline(deadline);
    call->stream = stub->Exchange(&call->context);
    if (cancelled_) call->context.TryCancel();
    calls.push_back(call);
  }
  return calls;
}

absl::Status SnapshotPuller::TryPull(int64_t at_step, uint32_t slot, absl::Duration timeout,
                                     std::vector<Reply>* replies, int64_t* next_step) {
  // Every server is asked before any is waited for, so that all of them know the step in time.
  const std::vector<Call*> calls = OpenCalls(timeout);
  for (size_t batch = 0; batch < batches_.size(); ++batch) {
    calls[batches_[batch].server]->stream->Write(RequestFor(batch, at_step, slot));
  }
  absl::Status status;
  std::vector<size_t> missing(calls.size(), 0);
  for (const Batch& batch : batches_) ++missing[batch.server];
  for (size_t server = 0; server < calls.size(); ++server) {
    Reply reply;
    while (status.ok() && missing[server] > 0 && calls[server]->stream->Read(&reply)) {
      --missing[server];
      const size_t batch = reply.request_id() - 1;
      if (batch >= batches_.size()) continue;
      if (reply.outcome() == Reply::LATE) {
        *next_step = std::max(*next_step, reply.next_step());
        continue;
      }
      if (reply.outcome() != Reply::OK) {
        status =
            absl::FailedPreconditionError(absl::StrCat(TaskName(job_.servers(server).task()), ": ", reply.message()));
        if (reply.outcome() == Reply::WAITING) status = absl::DeadlineExceededError(status.message());
        break;
      }
      status = Annotate(CheckReply(batch, reply), TaskName(job_.servers(server).task()));
      (*replies)[batch] = std::move(reply);
    }
    // A broken stream keeps its own error; a whole one is ended from here.
    if (!status.ok() || missing[server] == 0) calls[server]->context.TryCancel();
    grpc::Status end = calls[server]->stream->Finish();
    if (status.ok() && missing[server] > 0) {
      status = Annotate(end.ok() ? absl::UnavailableError("the stream ended early") : FromGrpcStatus(end),
                        absl::StrCat(TaskName(job_.servers(server).task()), " at ", job_.servers(server).address()));
    }
  }
  if (status.ok() && *next_step > 0) return absl::AbortedError(absl::StrCat("step ", at_step, " has been passed"));
  return status;
}

absl::StatusOr<SnapshotPuller::Snapshot> SnapshotPuller::Pull(int64_t at_step, absl::Duration timeout,
                                                              const Store& store) {
  return Pull(at_step, /*slot=*/0, timeout, store);
}

absl::StatusOr<SnapshotPuller::Snapshot> SnapshotPuller::PullSlot(uint32_t slot, absl::Duration timeout,
                                                                  const Store& store) {
  return Pull(/*at_step=*/-1, slot, timeout, store);
}

absl::StatusOr<SnapshotPuller::Snapshot> SnapshotPuller::Pull(int64_t at_step, uint32_t slot, absl::Duration timeout,
                                                              const Store& store) {
  std::vector<Reply> replies(batches_.size());
  int64_t step = at_step;
  for (int tries = 1;; ++tries) {
    int64_t next_step = 0;
    absl::Status status = TryPull(step, slot, timeout, &replies, &next_step);
    if (cancelled()) return absl::CancelledError("given up");
    if (status.ok()) break;
    // Training stands still (its last step is over, say): what is there now is as consistent as it gets.
    if (step >= 0 && absl::IsDeadlineExceeded(status)) {
      step = -1;
      continue;
    }
    if (!absl::IsAborted(status) || tries == kTries) return status;
    step = next_step + kStepsAhead * tries;
  }
  Snapshot snapshot{.step = step, .version_min = replies.empty() ? 0 : replies[0].chunks(0).version()};
  snapshot.updates.resize(static_cast<size_t>(tensors_), 0);
  for (const Reply& reply : replies) {
    const char* data = reply.payload().data();
    for (const v1::ChunkWeights& entry : reply.chunks()) {
      const v1::ChunkPlacement& placement = job_.chunks(entry.chunk());
      store(placement.tensor(), placement.offset(), data, placement.length());
      data += placement.length() * sizeof(float);
      int64_t& updates = snapshot.updates[placement.tensor()];
      updates = std::max(updates, entry.updates());
      snapshot.version_min = std::min(snapshot.version_min, entry.version());
      snapshot.version_max = std::max(snapshot.version_max, entry.version());
    }
  }
  return snapshot;
}

}  // namespace rubato::worker
