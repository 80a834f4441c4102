#ifndef RUBATO_WORKER_PS_CLIENT_EXCHANGE_TRACE_H_
#define RUBATO_WORKER_PS_CLIENT_EXCHANGE_TRACE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/trace/trace_recorder.h"
#include "proto/coordinator.pb.h"

namespace rubato::worker {

// Records each batch's exchange with its server, from its first request to the weights in their place, repetitions
// included. Not thread-safe.
class ExchangeTrace {
 public:
  // What is said of a batch: the server that it goes to, and the tensors that it holds parts of.
  struct BatchName {
    std::string server;
    std::string tensors;
  };
  // An answer.
  struct Stored {
    // When it came, and when its weights were in place.
    absl::Time arrived;
    absl::Time stored;
    // The one that the weights are of.
    int64_t step = 0;
    int64_t sent_bytes = 0;  // Of a push.
    int64_t received_bytes = 0;
  };

  // `recorder` outlives it; null: nothing is recorded. `batches` names them by number.
  ExchangeTrace(TraceRecorder* recorder, const v1::TaskId& task, std::vector<BatchName> batches);

  bool enabled() const { return recorder_ != nullptr && recorder_->enabled(); }

  // A request is sent; `pushed_step` is -1 if it pulls only.
  void OnSend(int batch, int64_t pushed_step, absl::Time now);
  // If enabled(): the exchange has ended, of a batch with these chunks.
  void Record(int batch, const std::vector<uint32_t>& chunks, const Stored& stored);
  // The next request begins another exchange.
  void OnEnd(int batch) { exchanges_[batch] = {}; }

 private:
  struct Exchange {
    // When its first request was sent; InfinitePast when nothing is in flight.
    absl::Time begun = absl::InfinitePast();
    // The step that was pushed; -1: none.
    int64_t pushed_step = -1;
  };

  // A batch's track and its tensors.
  std::pair<TraceTrack, TraceText> NamesOf(int batch);

  TraceRecorder* const recorder_;
  const v1::TaskId task_;
  const std::vector<BatchName> batches_;
  // By batch; the names once they have been used.
  std::vector<Exchange> exchanges_;
  std::vector<std::pair<TraceTrack, TraceText>> names_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_EXCHANGE_TRACE_H_
