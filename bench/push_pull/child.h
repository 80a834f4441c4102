#ifndef RUBATO_BENCH_PUSH_PULL_CHILD_H_
#define RUBATO_BENCH_PUSH_PULL_CHILD_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace rubato::bench {

// Another process of this program, spoken to line by line through its standard input and output. It ends with this
// object, or with this process. Not thread-safe.
class Child {
 public:
  // `arguments` without the program's name.
  static absl::StatusOr<std::unique_ptr<Child>> Start(const std::vector<std::string>& arguments);
  // Kills it and waits for its end.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Sends `line`, if any, and returns the line that comes next. Unavailable when the process has ended,
  // DeadlineExceeded when nothing came in time.
  absl::StatusOr<std::string> Ask(const std::string& line, absl::Duration timeout);

  pid_t process() const { return process_; }

 private:
  Child(pid_t process, int to, int from) : process_(process), to_(to), from_(from) {}

  const pid_t process_;
  const int to_;
  const int from_;
  std::string received_;  // And not yet returned.
};

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_CHILD_H_
