#ifndef RUBATO_COORDINATOR_RECORD_FILE_LOCK_H_
#define RUBATO_COORDINATOR_RECORD_FILE_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace rubato::coordinator {

// Only one process at a time has it. The system takes it back when the process ends, however that is. The file stays
// and names the process that had it last.
class FileLock {
 public:
  // Creates the file if there is none. FailedPrecondition: another process, or another FileLock of this one, has it;
  // the message is "process <id> on <host>", as far as that is known. Other errors as of DiskError. On a file system
  // that knows no locks, everybody gets it.
  static absl::StatusOr<std::unique_ptr<FileLock>> Acquire(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  explicit FileLock(int file) : file_(file) {}

  const int file_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RECORD_FILE_LOCK_H_
