#include "cli/launch/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rubato {
namespace {

// Closes a descriptor at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

absl::Status SystemError(int error, absl::string_view what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(error)));
}

// The child between fork and exec: only calls that are safe after forking a process with threads. Writes errno to
// `error_fd` when it fails.
[[noreturn]] void Execute(char* const* argv, char* const* environment, const std::array<int, 3>& streams,
                          const cpu_set_t* cpus, int error_fd, pid_t parent) {
  setpgid(0, 0);
  if (cpus != nullptr) sched_setaffinity(0, sizeof(*cpus), cpus);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  bool ready = getppid() == parent && dup2(streams[0], STDIN_FILENO) >= 0 && dup2(streams[1], STDOUT_FILENO) >= 0 &&
               dup2(streams[2], STDERR_FILENO) >= 0;
  if (ready) execve(argv[0], argv, environment);
  int error = errno;
  ssize_t ignored = write(error_fd, &error, sizeof(error));
  static_cast<void>(ignored);
  _exit(127);
}

absl::string_view NameOf(absl::string_view variable) { return variable.substr(0, variable.find('=')); }

// The caller's environment with these variables.
std::vector<std::string> EnvironmentWith(const std::vector<std::string>& variables) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool is_replaced = std::any_of(variables.begin(), variables.end(), [entry](const std::string& variable) {
      return NameOf(variable) == NameOf(*entry);
    });
    if (!is_replaced) environment.emplace_back(*entry);
  }
  environment.insert(environment.end(), variables.begin(), variables.end());
  return environment;
}

// As exec takes them; valid as long as `texts`.
std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string ExitResult::Describe() const {
  if (signal != 0) return absl::StrCat("signal ", signal, " (", strsignal(signal), ")");
  return absl::StrCat("exit status ", code);
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const std::vector<std::string>& argv,
                                                                  const std::string& log_path) {
  return Start(argv, Streams{.output = log_path, .errors = log_path});
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const std::vector<std::string>& argv,
                                                                  const Streams& streams,
                                                                  const std::vector<std::string>& variables,
                                                                  std::optional<int> cpu) {
  constexpr int kAppend = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  Descriptor input(open(streams.input.c_str(), O_RDONLY | O_CLOEXEC));
  if (input.get() < 0) return SystemError(errno, streams.input);
  Descriptor output(open(streams.output.c_str(), kAppend, 0644));
  if (output.get() < 0) return SystemError(errno, streams.output);
  Descriptor errors(open(streams.errors.c_str(), kAppend, 0644));
  if (errors.get() < 0) return SystemError(errno, streams.errors);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError(errno, "pipe");
  Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  const std::vector<std::string> environment = EnvironmentWith(variables);
  const std::vector<char*> arguments = Pointers(argv);
  const std::vector<char*> environment_pointers = Pointers(environment);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (cpu.has_value()) CPU_SET(*cpu, &cpus);

  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return SystemError(errno, "fork");
  if (pid == 0) {
    Execute(arguments.data(), environment_pointers.data(), {input.get(), output.get(), errors.get()},
            cpu.has_value() ? &cpus : nullptr, writer.get(), parent);
  }
  close(writer.Release());
  // Both sides set it, so that the group exists whoever comes first.
  setpgid(pid, pid);
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(reader.get(), &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  // By its number: the C library's declaration cannot be linked from C++ before glibc 2.37.
  int descriptor = got == 0 ? static_cast<int>(syscall(SYS_pidfd_open, pid, 0)) : -1;
  if (descriptor < 0) {
    if (got == 0) error = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return SystemError(error, absl::StrCat("cannot start ", argv[0]));
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, descriptor));
}

ChildProcess::~ChildProcess() {
  if (!Poll().has_value()) {
    Signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(descriptor_);
}

std::optional<ExitResult> ChildProcess::Poll() {
  if (result_.has_value()) return result_;
  siginfo_t info = {};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != pid_) {
    return std::nullopt;
  }
  // What it may have left of its group, while its number is still its own.
  kill(-pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  result_.emplace();
  if (WIFSIGNALED(status)) {
    result_->signal = WTERMSIG(status);
  } else {
    result_->code = WEXITSTATUS(status);
  }
  return result_;
}

void ChildProcess::Signal(int signal) {
  if (!result_.has_value()) kill(-pid_, signal);
}

std::string LastLines(const std::string& path, int lines) {
  constexpr std::streamoff kBytesMax = 16384;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  std::streamoff size = file.tellg();
  std::streamoff begin = std::max<std::streamoff>(0, size - kBytesMax);
  std::string text(static_cast<size_t>(size - begin), '\0');
  file.seekg(begin);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (!text.empty() && text.back() != '\n') text += '\n';
  // Back over `lines` newlines before the last one.
  size_t begin_of_tail = text.size();
  for (int i = 0; i < lines && begin_of_tail > 0; ++i) {
    size_t newline = begin_of_tail < 2 ? std::string::npos : text.rfind('\n', begin_of_tail - 2);
    begin_of_tail = newline == std::string::npos ? 0 : newline + 1;
  }
  return text.substr(begin_of_tail);
}

}  // namespace rubato
