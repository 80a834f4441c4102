#include "common/trace/timed_trace.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

// Whatever the coordinator allows, memory bounds it.
constexpr double kLongestSeconds = 3600;

}  // namespace

void TimedTrace::Record(const v1::RecordTrace& request) {
  MutexLock lock(mu_);
  if (request.id() == begun_ || finish_) return;
  begun_ = request.id();
  // Written so that NaN is refused too.
  if (!(request.seconds() > 0 && request.seconds() <= kLongestSeconds)) {
    last_.set_id(request.id());
    last_.clear_path();
    last_.set_error(
        absl::StrCat("record_trace.seconds: value ", request.seconds(), "; allowed: above 0, up to ", kLongestSeconds));
    return;
  }
  if (recording_ || !options_.recorder->Start()) {
    last_.set_id(request.id());
    last_.clear_path();
    last_.set_error("another trace is being recorded");
    return;
  }
  if (thread_.joinable()) thread_.join();  // It has given the lock back for the last time.
  recording_ = true;
  const absl::Time until = options_.clock->Now() + absl::Seconds(request.seconds());
  thread_ = std::thread([this, id = request.id(), until] { Run(id, until); });
}

v1::TraceDone TimedTrace::last() {
  MutexLock lock(mu_);
  return last_;
}

void TimedTrace::Finish() {
  std::thread thread;
  {
    MutexLock lock(mu_);
    finish_ = true;
    changed_.NotifyAll();
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
}

void TimedTrace::Run(uint64_t id, absl::Time until) {
  {
    MutexLock lock(mu_);
    while (!finish_ && options_.clock->Now() < until) {
      changed_.WaitFor(mu_, std::max(until - options_.clock->Now(), absl::Milliseconds(1)));
    }
  }
  options_.recorder->Stop();
  const std::string directory = JoinPath(options_.directory, absl::StrCat(id));
  const std::string path = JoinPath(directory, options_.file);
  absl::Status status = MakeDirectories(directory);
  if (status.ok()) status = options_.recorder->Write(path);
  if (status.ok()) {
    options_.log->Info(absl::StrCat("wrote the trace ", path));
  } else {
    options_.log->Warning(absl::StrCat("the trace could not be written: ", status.message()));
  }
  MutexLock lock(mu_);
  last_.set_id(id);
  last_.set_path(path);
  last_.set_error(std::string(status.message()));
  recording_ = false;
}

}  // namespace rubato
