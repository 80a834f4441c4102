#include "cli/capacity/recorded_requests.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace rubato::capacity {
namespace {

// A longer pause between two answers is one in which the thread had nothing to do.
constexpr SimTime kWakeMax = 200'000;

// "worker 3, chunk 17".
bool ReadMessageRow(absl::string_view name, uint32_t* worker, uint32_t* chunk) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(name, absl::MaxSplits(", chunk ", 1));
  absl::string_view task = parts.first;
  return absl::ConsumePrefix(&task, "worker ") && absl::SimpleAtoi(task, worker) &&
         absl::SimpleAtoi(parts.second, chunk);
}

// Requests of one batch of one worker follow each other: each waits in the queue, is read, and waits for its answer.
void AddRequests(const TraceRow& row, uint32_t worker, uint32_t chunk, std::vector<RecordedRequest>* requests) {
  const TraceSpan* queued = nullptr;
  for (const TraceSpan& span : row.spans) {
    if (span.category == "queue") {
      queued = &span;
    } else if (span.category == "barrier" && queued != nullptr) {
      if (span.outcome == "OK") {
        requests->push_back({.worker = worker,
                             .first_chunk = chunk,
                             .step = span.step,
                             .arrived = queued->begin,
                             .begun = queued->end,
                             .taken = span.begin,
                             .answered = span.end});
      }
      queued = nullptr;
    }
  }
}

// What the threads of all partitions did, by when it began.
class Work {
 public:
  explicit Work(const TaskTrace& server) {
    for (const TraceRow& row : server.rows) {
      if (!absl::StartsWith(row.name, "partition ")) continue;
      for (const TraceSpan& span : row.spans) {
        if (span.category == "receive") receives_[{span.begin, span.worker}] = &row;
        if (span.category == "answer") answers_[{span.begin, span.worker}] = {&row, &span};
      }
    }
  }

  // Of a request whose reading began then; null if that is not in the trace.
  const TraceRow* RowOf(const RecordedRequest& request) const {
    const auto found = receives_.find({request.begun, request.worker});
    return found == receives_.end() ? nullptr : found->second;
  }
  const TraceSpan* AnswerOf(const RecordedRequest& request) const {
    const auto found = answers_.find({request.answered, request.worker});
    return found == answers_.end() ? nullptr : found->second.second;
  }

 private:
  using Key = std::pair<SimTime, int64_t>;
  std::map<Key, const TraceRow*> receives_;
  std::map<Key, std::pair<const TraceRow*, const TraceSpan*>> answers_;
};

// Looks at what the partition's thread did while the request waited for its answer.
void Examine(const TraceRow& partition, RecordedRequest* request) {
  request->at_once = true;
  auto span = std::lower_bound(partition.spans.begin(), partition.spans.end(), request->taken,
                               [](const TraceSpan& one, SimTime at) { return one.begin < at; });
  for (; span != partition.spans.end() && span->begin < request->answered; ++span) {
    if (span->category == "receive") request->at_once = false;
    request->others += span->length();
  }
}

void AddRow(const TraceRow& partition, RecordedServer* server) {
  const TraceSpan* before = nullptr;
  for (const TraceSpan& span : partition.spans) {
    if (span.category == "apply" || span.category == "reduce") {
      server->updates.push_back(
          {static_cast<uint32_t>(span.chunk), std::max<int64_t>(1, span.contributions), span.length()});
    }
    const bool follows = before != nullptr && before->category == "answer" && span.category == "answer";
    if (follows && span.begin - before->end <= kWakeMax) {
      server->wakes.push_back({static_cast<uint32_t>(span.worker), std::max<SimTime>(0, span.begin - before->end)});
    }
    before = &span;
  }
}

}  // namespace

RecordedServer ReadRecordedServer(const TaskTrace& server) {
  RecordedServer recorded;
  std::vector<RecordedRequest> requests;
  for (const TraceRow& row : server.rows) {
    uint32_t worker = 0, chunk = 0;
    if (ReadMessageRow(row.name, &worker, &chunk)) AddRequests(row, worker, chunk, &requests);
    if (absl::StartsWith(row.name, "partition ")) AddRow(row, &recorded);
  }
  const Work work(server);
  for (RecordedRequest& request : requests) {
    const TraceRow* partition = work.RowOf(request);
    const TraceSpan* answer = work.AnswerOf(request);
    if (partition == nullptr || answer == nullptr) continue;
    request.sent = answer->end;
    Examine(*partition, &request);
    recorded.requests.push_back(request);
  }
  return recorded;
}

}  // namespace rubato::capacity
