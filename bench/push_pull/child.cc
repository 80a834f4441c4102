#include "bench/push_pull/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "bench/push_pull/sockets.h"

namespace rubato::bench {

absl::StatusOr<std::unique_ptr<Child>> Child::Start(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"/proc/self/exe"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int to[2];
  int from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) return SystemError("pipe");
  const pid_t process = fork();
  if (process < 0) return SystemError("fork");
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  return std::unique_ptr<Child>(new Child(process, to[1], from[0]));
}

Child::~Child() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  close(to_);
  close(from_);
}

absl::StatusOr<std::string> Child::Ask(const std::string& line, absl::Duration timeout) {
  if (!line.empty()) {
    const std::string sent = absl::StrCat(line, "\n");
    if (write(to_, sent.data(), sent.size()) != static_cast<ssize_t>(sent.size())) return SystemError("write to child");
  }
  for (;;) {
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      std::string reply = received_.substr(0, end);
      received_.erase(0, end + 1);
      return reply;
    }
    pollfd waits = {from_, POLLIN, 0};
    if (poll(&waits, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) == 0) {
      return absl::DeadlineExceededError(absl::StrCat("no answer within ", absl::FormatDuration(timeout)));
    }
    char buffer[512];
    const ssize_t bytes = read(from_, buffer, sizeof(buffer));
    if (bytes <= 0) return absl::UnavailableError("the process has ended; its standard error says why");
    received_.append(buffer, bytes);
  }
}

}  // namespace rubato::bench
