#ifndef RUBATO_CLI_CAPACITY_RECORDED_REQUESTS_H_
#define RUBATO_CLI_CAPACITY_RECORDED_REQUESTS_H_

#include <cstdint>
#include <vector>

#include "cli/capacity/task_trace.h"

namespace rubato::capacity {

// What a server did for one request, from its trace.
struct RecordedRequest {
  uint32_t worker = 0;
  uint32_t first_chunk = 0;
  int64_t step = 0;  // To begin.
  // On the server's clock: it came; it was its turn; its rules began; its answer was begun, and sent.
  SimTime arrived = 0;
  SimTime begun = 0;
  SimTime taken = 0;
  SimTime answered = 0;
  SimTime sent = 0;
  // What updates and other requests' answers took between taken and answered.
  SimTime others = 0;
  // It has not waited: the thread worked on it all the time.
  bool at_once = false;
};

// An update of a chunk.
struct RecordedUpdate {
  uint32_t chunk = 0;
  int64_t contributions = 0;
  SimTime length = 0;
};

// Between two answers that a partition's thread gave one after the other.
struct RecordedWake {
  uint32_t worker = 0;
  SimTime length = 0;
};

struct RecordedServer {
  std::vector<RecordedRequest> requests;
  std::vector<RecordedUpdate> updates;
  std::vector<RecordedWake> wakes;
};

// Of all that is whole in the trace. Requests that ended without weights are left out. Pure.
RecordedServer ReadRecordedServer(const TaskTrace& server);

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_RECORDED_REQUESTS_H_
