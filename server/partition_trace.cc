#include "server/partition_trace.h"

#include "absl/strings/str_cat.h"
#include "common/task.h"
#include "common/trace/flow_id.h"

namespace rubato::server {
namespace {

constexpr TraceKind kReceive = {"receive", "receive", {"worker", "step", "chunks"}};
constexpr TraceKind kQueue = {"queue", "queue", {"step"}};
constexpr TraceKind kApply = {"apply", "apply", {"chunk", "version", "step", "contributions"}};
constexpr TraceKind kReduce = {"reduce", "reduce and apply", {"chunk", "version", "step", "contributions"}};
constexpr TraceKind kAnswer = {"answer", "answer", {"worker", "step"}};
constexpr TraceKind kWait = {"barrier", "wait", {"step", "outcome"}};

}  // namespace

PartitionTrace::PartitionTrace(TraceRecorder* recorder, const Clock* clock, uint32_t partition, const ModelSpec* model,
                               const v1::JobDescription* job)
    : recorder_(recorder),
      clock_(clock),
      model_(model),
      job_(job),
      track_(recorder == nullptr ? TraceTrack{} : recorder->Track(absl::StrCat("partition ", partition))) {}

absl::Time PartitionTrace::Now() const {
  return recorder_ != nullptr && recorder_->enabled() ? clock_->Now() : absl::InfinitePast();
}

bool PartitionTrace::Records(absl::Time begun) const { return begun != absl::InfinitePast() && recorder_->enabled(); }

TraceText PartitionTrace::ChunkName(uint32_t chunk) {
  if (chunk_names_.empty()) chunk_names_.resize(static_cast<size_t>(job_->chunks_size()));
  TraceText& name = chunk_names_[chunk];
  if (name.number != 0) return name;
  const v1::ChunkPlacement& placement = job_->chunks(static_cast<int>(chunk));
  const size_t tensors = model_->tensors.size();
  if (placement.tensor() >= tensors) {
    return name = recorder_->Text(
               absl::StrCat(model_->tables[placement.tensor() - tensors].config.name(), " shard ", placement.offset()));
  }
  const std::string& tensor = model_->tensors[placement.tensor()].name;
  return name = recorder_->Text(placement.offset() == 0 ? tensor : absl::StrCat(tensor, "+", placement.offset()));
}

TraceTrack PartitionTrace::MessageTrack(const v1::TaskId& task, uint32_t chunk) {
  TraceTrack& track = message_tracks_[{task.role(), task.index(), chunk}];
  if (track.number == 0) track = recorder_->Track(absl::StrCat(TaskName(task), ", chunk ", chunk));
  return track;
}

PartitionTrace::Request PartitionTrace::Received(const PartitionRequest& request, absl::Time arrived,
                                                 absl::Time begun) {
  if (!Records(begun) || request.chunks.empty()) return {};
  const bool pushes = request.kind == PartitionRequest::Kind::kPushPull;
  const Request traced = {.task = request.task,
                          .step = pushes ? request.step + 1 : request.step,
                          .chunk = request.chunks.front(),
                          .taken = clock_->Now()};
  recorder_->Span(kReceive, {.track = track_, .subject = ChunkName(traced.chunk), .begin = begun, .end = traced.taken},
                  {request.task.index(), request.step, static_cast<int64_t>(request.chunks.size())});
  if (arrived != absl::InfinitePast()) {
    recorder_->Span(kQueue, {.track = MessageTrack(request.task, traced.chunk), .begin = arrived, .end = begun},
                    {request.step});
  }
  return traced;
}

void PartitionTrace::Applied(const ChunkRules::Update& update, absl::Time begun) {
  if (!Records(begun)) return;
  recorder_->Span(update.contributions.size() > 1 ? kReduce : kApply,
                  {.track = track_, .subject = ChunkName(update.chunk), .begin = begun, .end = clock_->Now()},
                  {update.chunk, update.from_version + 1,
                   update.contributions.empty() ? -1 : update.contributions.front().header->step,
                   static_cast<int64_t>(update.contributions.size())});
  for (const Contribution& contribution : update.contributions) {
    const uint64_t id = PushFlowId(contribution.header->task, contribution.header->step, update.chunk);
    recorder_->Flow(kPushFlow, {.track = track_, .id = id, .at = begun});
  }
}

void PartitionTrace::Answered(const Request& request, v1::ExchangeReply::Outcome outcome, absl::Time begun) {
  if (!Records(begun) || request.taken == absl::InfinitePast()) return;
  recorder_->Span(kAnswer, {.track = track_, .subject = ChunkName(request.chunk), .begin = begun, .end = clock_->Now()},
                  {request.task.index(), request.step});
  recorder_->Span(kWait, {.track = MessageTrack(request.task, request.chunk), .begin = request.taken, .end = begun},
                  {request.step, recorder_->Text(v1::ExchangeReply::Outcome_Name(outcome))});
}

}  // namespace rubato::server
