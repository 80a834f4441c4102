#include "server/partition_trace.h"

#include "absl/strings/str_cat.h"
#include "common/task.h"
#include "common/trace/flow_id.h"

namespace rubato::server {

PartitionTrace::PartitionTrace(TraceRecorder* recorder, const Clock* clock, uint32_t partition, const ModelSpec* model,
                               const v1::JobDescription* job)
    : recorder_(recorder), clock_(clock), model_(model), job_(job), track_(absl::StrCat("partition ", partition)) {}

absl::Time PartitionTrace::Now() const {
  return recorder_ != nullptr && recorder_->enabled() ? clock_->Now() : absl::InfinitePast();
}

std::string PartitionTrace::ChunkName(uint32_t chunk) const {
  const v1::ChunkPlacement& placement = job_->chunks(static_cast<int>(chunk));
  const std::string& tensor = model_->tensors[placement.tensor()].name;
  return placement.offset() == 0 ? tensor : absl::StrCat(tensor, "+", placement.offset());
}

std::string PartitionTrace::TrackOf(const Request& request) {
  return absl::StrCat(TaskName(request.task), ", chunk ", request.chunk);
}

PartitionTrace::Request PartitionTrace::Received(const PartitionRequest& request, absl::Time arrived,
                                                 absl::Time begun) {
  if (begun == absl::InfinitePast() || request.chunks.empty()) return {};
  const bool pushes = request.kind == PartitionRequest::Kind::kPushPull;
  const Request traced = {.task = request.task,
                          .step = pushes ? request.step + 1 : request.step,
                          .chunk = request.chunks.front(),
                          .taken = clock_->Now()};
  const std::string name = absl::StrCat("receive ", ChunkName(traced.chunk), " of ", TaskName(request.task));
  recorder_->Span({.track = track_, .category = "receive", .name = name, .begin = begun, .end = traced.taken},
                  {{"worker", request.task.index()},
                   {"step", request.step},
                   {"chunks", static_cast<int64_t>(request.chunks.size())}});
  if (arrived != absl::InfinitePast()) {
    const std::string track = TrackOf(traced);
    recorder_->Span({.track = track, .category = "queue", .name = "queue", .begin = arrived, .end = begun},
                    {{"step", request.step}});
  }
  return traced;
}

void PartitionTrace::Applied(const ChunkRules::Update& update, absl::Time begun) {
  if (begun == absl::InfinitePast()) return;
  const bool reduces = update.contributions.size() > 1;
  const std::string name = absl::StrCat(reduces ? "reduce and apply " : "apply ", ChunkName(update.chunk));
  recorder_->Span(
      {.track = track_, .category = reduces ? "reduce" : "apply", .name = name, .begin = begun, .end = clock_->Now()},
      {{"chunk", update.chunk},
       {"version", update.from_version + 1},
       {"step", update.contributions.empty() ? -1 : update.contributions.front().step},
       {"contributions", static_cast<int64_t>(update.contributions.size())}});
  for (const Contribution& contribution : update.contributions) {
    const uint64_t id = PushFlowId(contribution.task, contribution.step, update.chunk);
    recorder_->Flow({.track = track_, .name = "push", .id = id, .at = begun});
  }
}

void PartitionTrace::Answered(const Request& request, v1::ExchangeReply::Outcome outcome, absl::Time begun) {
  if (begun == absl::InfinitePast() || request.taken == absl::InfinitePast()) return;
  const std::string to = absl::StrCat("answer ", ChunkName(request.chunk), " to ", TaskName(request.task));
  recorder_->Span({.track = track_, .category = "answer", .name = to, .begin = begun, .end = clock_->Now()},
                  {{"worker", request.task.index()}, {"step", request.step}});
  const std::string track = TrackOf(request);
  const std::string wait = absl::StrCat("wait for step ", request.step);
  recorder_->Span({.track = track, .category = "barrier", .name = wait, .begin = request.taken, .end = begun},
                  {{"step", request.step}, {"outcome", v1::ExchangeReply::Outcome_Name(outcome)}});
}

}  // namespace rubato::server
