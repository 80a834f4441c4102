#ifndef RUBATO_COMMON_STORAGE_PART_WRITER_H_
#define RUBATO_COMMON_STORAGE_PART_WRITER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/storage/part_queue.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// Writes a task's parts of checkpoints, and removes old ones, in a thread of its own. A disk that fails, or is full,
// is tried again until the part is written or something newer takes its place; the first failure is told in the log.
// Thread-safe; nothing but the destructor waits for the disk.
//
//   PartWriter writer({.directory = ..., .task = ..., .clock = &clock, .log = &log});
//   writer.BeginCut(plan.cut());
//   writer.AddCut({.name = plan.cut().name(), .cut = plan.cut(), .write = ...});
//   ... writer.progress().written() ...
class PartWriter {
 public:
  struct Options {
    // That of all checkpoints.
    std::string directory;
    v1::TaskId task;
    // Whether it removes other tasks' old parts as well: copies, and those of tasks that are gone.
    bool removes_others = false;
    PartQueue::Options queue = {};
    // Both outlive the writer.
    const Clock* clock = nullptr;
    Logger* log = nullptr;
    // The checkpoint of this name, which is of no cut, is on the disk. Called on the thread.
    std::function<void(const std::string& name)> on_checkpoint = {};
  };

  explicit PartWriter(Options options);
  // What is being written is given up.
  ~PartWriter();
  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;

  // As PartQueue's; a name that no cut can have is told in the log.
  void BeginCut(const v1::Cut& cut);
  void AddCut(PendingPart part);
  void AddCheckpoint(PendingPart part);
  void Keep(std::vector<std::string> names);
  v1::CutProgress progress();

 private:
  void Run();
  // Waits until there is something to do. Nothing: the writer ends.
  PartQueue::Work Await();
  void Write(std::shared_ptr<const PendingPart> part);
  bool stopping();

  const Options options_;
  Mutex mu_;
  CondVar wake_;
  PartQueue queue_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_PART_WRITER_H_
