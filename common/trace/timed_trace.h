#ifndef RUBATO_COMMON_TRACE_TIMED_TRACE_H_
#define RUBATO_COMMON_TRACE_TIMED_TRACE_H_

#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/trace/trace_recorder.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// Lets a recorder record for a time, as the coordinator's RecordTrace says, and writes what came of it to
// <directory>/<id>/<file>, all on a thread of its own. Thread-safe.
//
//   TimedTrace timed({.recorder = &trace, .directory = "runs/job/traces", .file = "worker-1.json", ...});
//   timed.Record(directive.record_trace());
//   *heartbeat.mutable_trace() = timed.last();
class TimedTrace {
 public:
  struct Options {
    // All outlive the trace.
    TraceRecorder* recorder = nullptr;
    const Clock* clock = nullptr;
    Logger* log = nullptr;
    std::string directory;
    std::string file;
  };

  explicit TimedTrace(Options options) : options_(std::move(options)) {}
  // As Finish.
  ~TimedTrace() { Finish(); }
  TimedTrace(const TimedTrace&) = delete;
  TimedTrace& operator=(const TimedTrace&) = delete;

  // Begins, and returns at once. A request that is repeated changes nothing; one that comes while another trace is
  // recorded, by whomever, is refused in last().
  void Record(const v1::RecordTrace& request);

  // The last request that is done with; id 0: none.
  v1::TraceDone last();

  // Ends what is being recorded and waits until it is written.
  void Finish();

 private:
  void Run(uint64_t id, absl::Time until);

  const Options options_;
  Mutex mu_;
  CondVar changed_;
  uint64_t begun_ ABSL_GUARDED_BY(mu_) = 0;  // The last request's id.
  bool recording_ ABSL_GUARDED_BY(mu_) = false;
  bool finish_ ABSL_GUARDED_BY(mu_) = false;
  v1::TraceDone last_ ABSL_GUARDED_BY(mu_);
  std::thread thread_ ABSL_GUARDED_BY(mu_);  // Has ended, or is about to, if nothing is recorded.
};

}  // namespace rubato

#endif  // RUBATO_COMMON_TRACE_TIMED_TRACE_H_
