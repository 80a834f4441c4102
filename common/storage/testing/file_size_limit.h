#ifndef RUBATO_COMMON_STORAGE_TESTING_FILE_SIZE_LIMIT_H_
#define RUBATO_COMMON_STORAGE_TESTING_FILE_SIZE_LIMIT_H_

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>

namespace rubato {

// As long as it lives files of this process become no longer than that, as on a disk that is full then.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    rlimit limit = before_;
    limit.rlim_cur = std::min(bytes, before_.rlim_max);
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() { EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_ = {};
};

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_TESTING_FILE_SIZE_LIMIT_H_
