#ifndef RUBATO_CLI_COMMAND_RUN_FOLLOWER_H_
#define RUBATO_CLI_COMMAND_RUN_FOLLOWER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/page/run_feed.h"

namespace rubato {

// Reads a run's record as it grows, by whole lines, into what a page shows of it. Not thread-safe.
class RunFollower {
 public:
  // `name`: what the page calls the run. Reads nothing but the config yet.
  RunFollower(const std::string& name, const std::string& directory);

  // Takes what has been written since. A last line without its end stays for later. InvalidArgument: a line that is
  // none of a run record, with "<file>: byte <offset>: ..."; those after it are taken by the next call. Errors of the
  // disk.
  absl::Status Read();

  const std::string& directory() const { return directory_; }
  RunFeed& feed() { return feed_; }
  const RunFeed& feed() const { return feed_; }

 private:
  const std::string directory_;
  const std::string path_;
  RunFeed feed_;
  // How far it was read.
  uint64_t offset_ = 0;
};

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_RUN_FOLLOWER_H_
