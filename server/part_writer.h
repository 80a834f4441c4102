#ifndef RUBATO_SERVER_PART_WRITER_H_
#define RUBATO_SERVER_PART_WRITER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "proto/coordinator.pb.h"
#include "server/part_files.h"
#include "server/part_queue.h"

namespace rubato::server {

// Writes a server's parts of checkpoints, and removes old ones, in a thread of its own. A disk that fails, or is full,
// is tried again until the part is written or something newer takes its place; the first failure is told in the log.
// Thread-safe; nothing but the destructor waits for the disk.
//
//   PartWriter writer({.files = PartFiles({...}), .clock = &clock, .log = &log, .on_checkpoint = ...});
//   writer.BeginCut(plan.cut());
//   writer.AddCut(std::move(part));
//   ... writer.progress().written() ...
class PartWriter {
 public:
  struct Options {
    PartFiles files;
    PartQueue::Options queue = {};
    const Clock* clock = nullptr;
    Logger* log = nullptr;
    // The checkpoint of this name, which is of no cut, is on the disk. Called on the thread.
    std::function<void(const std::string& name)> on_checkpoint;
  };

  explicit PartWriter(Options options);
  // What is being written is given up.
  ~PartWriter();
  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;

  // As PartQueue's.
  void BeginCut(const v1::Cut& cut);
  void AddCut(std::shared_ptr<const Part> part);
  void AddCheckpoint(std::shared_ptr<const Part> part);
  void Keep(std::vector<std::string> names);
  v1::CutProgress progress();

 private:
  void Run();
  // Waits until there is something to do. Nothing: the writer ends.
  PartQueue::Work Await();
  void Write(std::shared_ptr<const Part> part);
  bool stopping();

  const Options options_;
  Mutex mu_;
  CondVar wake_;
  PartQueue queue_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_PART_WRITER_H_
