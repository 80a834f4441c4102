#ifndef RUBATO_SERVER_PARTITION_TRACE_H_
#define RUBATO_SERVER_PARTITION_TRACE_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/model_spec.h"
#include "common/trace/trace_recorder.h"
#include "proto/coordinator.pb.h"
#include "server/rules/partition.h"

namespace rubato::server {

// What a partition does, and when, for a trace: on the partition's own track taking messages in, updating chunks and
// answering; and for each worker's messages a track with how long they waited for their turn and for others' steps. An
// arrow ends at each update, from the push that it applies. Costs a look at a flag while nothing is recorded. Used by
// whoever is at work on the partition.
//
//   const absl::Time begun = trace.Now();
//   store.Apply(update);
//   trace.Applied(update, begun);
class PartitionTrace {
 public:
  // A request whose answer is to come.
  struct Request {
    v1::TaskId task;
    int64_t step = 0;
    uint32_t chunk = 0;  // Its first.
    absl::Time taken = absl::InfinitePast();
  };

  // `recorder` may be null. All outlive the trace.
  PartitionTrace(TraceRecorder* recorder, const Clock* clock, uint32_t partition, const ModelSpec* model,
                 const v1::JobDescription* job);

  // InfinitePast while nothing is recorded: what began then leaves no span.
  absl::Time Now() const;

  // The request came at `arrived` and its gradients were read from `begun` until now.
  Request Received(const PartitionRequest& request, absl::Time arrived, absl::Time begun);
  // Reduced and applied from `begun` until now.
  void Applied(const ChunkRules::Update& update, absl::Time begun);
  // The answer was made and sent from `begun` until now.
  void Answered(const Request& request, v1::ExchangeReply::Outcome outcome, absl::Time begun);

 private:
  // Whether what began then leaves a span. While a trace is written, its texts cannot be had: nobody should wait for
  // them to record nothing.
  bool Records(absl::Time begun) const;
  TraceText ChunkName(uint32_t chunk);
  // Of the messages that a task sends of chunks that begin with `chunk`.
  TraceTrack MessageTrack(const v1::TaskId& task, uint32_t chunk);

  TraceRecorder* const recorder_;
  const Clock* const clock_;
  const ModelSpec* const model_;
  const v1::JobDescription* const job_;
  const TraceTrack track_;
  // Made when they are first used: by chunk, and by role, index and chunk.
  std::vector<TraceText> chunk_names_;
  absl::flat_hash_map<std::tuple<int, uint32_t, uint32_t>, TraceTrack> message_tracks_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_PARTITION_TRACE_H_
