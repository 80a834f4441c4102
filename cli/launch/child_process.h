#ifndef RUBATO_CLI_LAUNCH_CHILD_PROCESS_H_
#define RUBATO_CLI_LAUNCH_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rubato {

// How a process ended.
struct ExitResult {
  int code = 0;
  // 0 unless a signal ended the process.
  int signal = 0;

  bool ok() const { return code == 0 && signal == 0; }
  // "exit status 3", "signal 9 (Killed)".
  std::string Describe() const;
};

// A started program in a process group of its own, whose output goes to files. It is killed with its group when
// the object goes, and by the kernel when the thread that started it ends: start children from the main thread.
// Not thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(auto child, ChildProcess::Start({"/bin/sleep", "1"}, "sleep.log"));
//   while (!child->Poll().has_value()) ...
class ChildProcess {
 public:
  // Paths. What is read; where standard output and standard error are appended to, which may be the same file.
  struct Streams {
    std::string input = "/dev/null";
    std::string output = "/dev/null";
    std::string errors = "/dev/null";
  };

  // `argv[0]` is the program's path. The log file is appended to. Signals blocked by the caller are not blocked in the
  // child; its standard input is empty.
  // Errors: the log cannot be opened or the program not be executed; the message names the file and the reason.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& argv,
                                                             const std::string& log_path);
  // The same with three files, and with variables, "NAME=value" each, added to the caller's environment or in place of
  // those of the same name. `cpu`: the one that it stays on, with all that it starts, if the system lets it.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& argv,
                                                             const Streams& streams,
                                                             const std::vector<std::string>& variables = {},
                                                             std::optional<int> cpu = std::nullopt);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // How it ended; nothing while it runs.
  std::optional<ExitResult> Poll();
  // Sends a signal to the process group; nothing happens when the process has ended.
  void Signal(int signal);

  pid_t pid() const { return pid_; }
  // Becomes readable (poll(2)) when the process has ended.
  int descriptor() const { return descriptor_; }

 private:
  ChildProcess(pid_t pid, int descriptor) : pid_(pid), descriptor_(descriptor) {}

  const pid_t pid_;
  const int descriptor_;
  std::optional<ExitResult> result_;
};

// The last `lines` lines of a text file, each with its newline; empty when there is none.
std::string LastLines(const std::string& path, int lines);

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_CHILD_PROCESS_H_
