#include "worker/ps_client/exchange_trace.h"

#include "absl/strings/str_cat.h"
#include "common/trace/flow_id.h"

namespace rubato::worker {
namespace {

constexpr TraceKind kPushAndPull = {"exchange", "push and pull", {"step", "sent_bytes", "received_bytes"}};
constexpr TraceKind kPull = {"exchange", "pull", {"step", "sent_bytes", "received_bytes"}};
constexpr TraceKind kStore = {"store", "store", {"step"}};

}  // namespace

ExchangeTrace::ExchangeTrace(TraceRecorder* recorder, const v1::TaskId& task, std::vector<BatchName> batches)
    : recorder_(recorder),
      task_(task),
      batches_(std::move(batches)),
      exchanges_(batches_.size()),
      names_(batches_.size()) {}

void ExchangeTrace::OnSend(int batch, int64_t pushed_step, absl::Time now) {
  Exchange& exchange = exchanges_[batch];
  if (exchange.begun == absl::InfinitePast()) exchange.begun = now;
  if (pushed_step >= 0) exchange.pushed_step = pushed_step;
}

std::pair<TraceTrack, TraceText> ExchangeTrace::NamesOf(int batch) {
  auto& names = names_[batch];
  if (names.first.number != 0) return names;
  const std::string track = absl::StrCat("batch ", batch, " (", batches_[batch].server, ")");
  return names = {recorder_->Track(track), recorder_->Text(batches_[batch].tensors)};
}

void ExchangeTrace::Record(int batch, const std::vector<uint32_t>& chunks, const Stored& stored) {
  const auto [track, tensors] = NamesOf(batch);
  const Exchange& exchange = exchanges_[batch];
  const bool pushed = exchange.pushed_step >= 0;
  recorder_->Span(pushed ? kPushAndPull : kPull, {track, tensors, exchange.begun, stored.stored},
                  {stored.step, pushed ? stored.sent_bytes : 0, stored.received_bytes});
  recorder_->Span(kStore, {track, tensors, stored.arrived, stored.stored}, {stored.step});
  if (!pushed) return;
  for (uint32_t chunk : chunks) {
    const uint64_t id = PushFlowId(task_, exchange.pushed_step, chunk);
    recorder_->Flow(kPushFlow, {.track = track, .id = id, .begins = true, .at = exchange.begun});
  }
}

}  // namespace rubato::worker
