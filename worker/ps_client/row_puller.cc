#include "worker/ps_client/row_puller.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/status.h"
#include "common/task.h"
#include "kernels/codec/codec.h"

namespace rubato::worker {
namespace {

// Tables travel whole, whatever a message may have.
constexpr int64_t kAnyBytes = int64_t{1} << 40;

}  // namespace

RowPuller::RowPuller(v1::JobDescription job, v1::TaskId task, const TaskSecurity* security, const ModelSpec& spec,
                     uint64_t seed)
    : job_(std::move(job)),
      task_(std::move(task)),
      batching_(MakeBatches(job_, static_cast<int>(spec.tensors.size()), kAnyBytes)),
      tables_(PartsOfTables(spec.tables, seed, batching_)) {
  if (tables_.empty()) return;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  for (const v1::ServerInfo& server : job_.servers()) {
    stubs_.push_back(v1::ParameterServer::NewStub(
        OpenChannel(server.address(), Party::kServer, server.task().index(), security, arguments)));
  }
}

void RowPuller::Cancel() {
  MutexLock lock(mu_);
  cancelled_ = true;
  if (open_ != nullptr) open_->TryCancel();
}

absl::Status RowPuller::Pull(int table, const std::vector<uint64_t>& keys, absl::Duration timeout, float* rows) {
  const std::vector<KeyPart> parts = tables_[table].Split(keys);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].count == 0) continue;
    const int batch = tables_[table].batches[i];
    const v1::ServerInfo& server = job_.servers(static_cast<int>(batching_.batches[batch].server));
    RUBATO_RETURN_IF_ERROR(Annotate(PullPart(table, batch, keys, parts[i], timeout, rows),
                                    absl::StrCat(TaskName(server.task()), " at ", server.address())));
  }
  return absl::OkStatus();
}

absl::Status RowPuller::PullPart(int table, int batch, const std::vector<uint64_t>& keys, const KeyPart& part,
                                 absl::Duration timeout, float* rows) {
  const ChunkBatch& chunks = batching_.batches[batch];
  v1::ExchangeRequest request;
  request.set_request_id(1);
  *request.mutable_task() = task_;
  request.set_job_fingerprint(job_.fingerprint());
  request.set_partition(chunks.partition);
  v1::Snapshot& snapshot = *request.mutable_snapshot();
  snapshot.set_at_step(-1);
  for (uint32_t chunk : chunks.chunks) snapshot.add_chunks(chunk);
  snapshot.mutable_table()->set_table(static_cast<uint32_t>(table));
  snapshot.mutable_table()->set_asked(part.count);
  request.mutable_payload()->resize(part.count * sizeof(uint64_t));
  part.Gather(keys.data(), sizeof(uint64_t), request.mutable_payload()->data());

  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
  {
    MutexLock lock(mu_);
    if (cancelled_) return absl::CancelledError("given up");
    open_ = &context;
  }
  const auto stream = stubs_[chunks.server]->Exchange(&context);
  v1::ExchangeReply reply;
  const bool answered = stream->Write(request) && stream->Read(&reply);
  if (answered) context.TryCancel();
  const grpc::Status end = stream->Finish();
  {
    MutexLock lock(mu_);
    open_ = nullptr;
    if (cancelled_) return absl::CancelledError("given up");
  }
  if (!answered) return end.ok() ? absl::UnavailableError("the stream ended early") : FromGrpcStatus(end);
  if (reply.outcome() != v1::ExchangeReply::OK) return absl::FailedPreconditionError(reply.message());
  const v1::Codec codec = tables_[table].pull;
  const int64_t dimension = tables_[table].dimension;
  const auto row_bytes = static_cast<size_t>(MaxEncodedBytes({codec}, dimension));
  if (reply.payload().size() != part.count * row_bytes) {
    return absl::InternalError(absl::StrCat("the answer has ", reply.payload().size(), " bytes, not the ", part.count,
                                            " rows that were asked for"));
  }
  const auto* from = reinterpret_cast<const uint8_t*>(reply.payload().data());
  for (const KeyPart::Run& run : part.runs) {
    const size_t bytes = run.count * row_bytes;
    Decode(codec, from, static_cast<int64_t>(bytes), static_cast<int64_t>(run.count) * dimension,
           rows + static_cast<int64_t>(run.begin) * dimension);
    from += bytes;
  }
  return absl::OkStatus();
}

}  // namespace rubato::worker
