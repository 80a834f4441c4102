#ifndef RUBATO_BENCH_SPARSE_REDIS_SERVER_H_
#define RUBATO_BENCH_SPARSE_REDIS_SERVER_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

namespace rubato::bench {

// The system's redis-server without persistence, on a Unix socket in a directory of its own. It ends with this object,
// or with this process.
class RedisServer {
 public:
  // NotFound: the program is not there.
  static absl::StatusOr<std::unique_ptr<RedisServer>> Start();
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  // A new connection.
  absl::StatusOr<FileDescriptor> Connect() const;

  pid_t process() const { return process_; }

 private:
  RedisServer(std::string directory, pid_t process) : directory_(std::move(directory)), process_(process) {}
  // Waits until it accepts connections.
  absl::Status AwaitReady();

  const std::string directory_;
  pid_t process_;
};

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_SPARSE_REDIS_SERVER_H_
