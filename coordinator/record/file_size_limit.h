#ifndef RUBATO_COORDINATOR_RECORD_FILE_SIZE_LIMIT_H_
#define RUBATO_COORDINATOR_RECORD_FILE_SIZE_LIMIT_H_

#include <sys/resource.h>

#include <csignal>

namespace rubato::coordinator {

// For tests: as long as it lives, files of this process may have so many bytes, as if the disk were full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RECORD_FILE_SIZE_LIMIT_H_
