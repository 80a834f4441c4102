#include "client/library/sidecar_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "client/library/sigterm.h"
#include "client/rubato_client.h"

extern char** environ;

namespace rubato::client {
namespace {

constexpr char kProgram[] = "rubato-sidecar";
// Its end of the socket pair, by which it knows its client.
constexpr int kSidecarDescriptor = 3;
constexpr double kEndSeconds = 5;
constexpr double kDescribeSeconds = 1;

std::string ErrnoText(const std::string& what, int error) {
  char text[128] = "";
  return what + ": " + strerror_r(error, text, sizeof(text));
}

// Beside the shared object that this function is in; otherwise the bare name, for PATH.
std::string FindProgram() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&rubato_open), &info) != 0 && info.dli_fname != nullptr) {
    const std::string library = info.dli_fname;
    const size_t slash = library.rfind('/');
    const std::string beside = (slash == std::string::npos ? "./" : library.substr(0, slash + 1)) + kProgram;
    if (access(beside.c_str(), X_OK) == 0) return beside;
  }
  return kProgram;
}

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

// Signals as a program expects them, whatever this process has done to its own.
class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    for (int signal : {SIGTERM, SIGINT, SIGPIPE, SIGCHLD, SIGHUP}) sigaddset(&usual, signal);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &usual);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  posix_spawnattr_t* get() { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

// 0, or why not.
int Spawn(const std::string& program, const std::string& log_path, int descriptor, pid_t* process) {
  FileActions files;
  // First of all, because the others may use its number.
  posix_spawn_file_actions_adddup2(files.get(), descriptor, kSidecarDescriptor);
  posix_spawn_file_actions_addopen(files.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(files.get(), STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (!log_path.empty()) {
    posix_spawn_file_actions_addopen(files.get(), STDERR_FILENO, log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  }
  Attributes attributes;
  std::string name = program, quiet = "--quiet";
  char* const arguments[] = {name.data(), log_path.empty() ? quiet.data() : nullptr, nullptr};
  const bool search = program.find('/') == std::string::npos;
  return (search ? posix_spawnp : posix_spawn)(process, program.c_str(), files.get(), attributes.get(), arguments,
                                               environ);
}

}  // namespace

std::unique_ptr<SidecarProcess> SidecarProcess::Start(const Options& options, int* descriptor, std::string* error) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    *error = ErrnoText("a socket pair for the sidecar", errno);
    return nullptr;
  }
  const std::string program = options.program.empty() ? FindProgram() : options.program;
  pid_t process = -1;
  const int failed = Spawn(program, options.log_path, ends[1], &process);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    *error =
        ErrnoText("the sidecar " + program + (options.log_path.empty() ? "" : ", with its log in " + options.log_path) +
                      " cannot be started",
                  failed);
    return nullptr;
  }
  *descriptor = ends[0];
  return std::unique_ptr<SidecarProcess>(new SidecarProcess(process));
}

SidecarProcess::SidecarProcess(pid_t process)
    : owner_(getpid()), process_(process), passes_sigterm_(PassSigtermTo(process)) {}

SidecarProcess::~SidecarProcess() {
  if (!forked()) {
    if (passes_sigterm_) StopPassingSigtermTo(process_);
    if (!AwaitEnd(kEndSeconds)) {
      kill(process_, SIGKILL);
      AwaitEnd(kEndSeconds);
    }
  }
}

bool SidecarProcess::forked() const { return getpid() != owner_; }

bool SidecarProcess::AwaitEnd(double seconds) {
  for (double waited = 0; !ended_; waited += 0.002) {
    int status = 0;
    const pid_t found = waitpid(process_, &status, WNOHANG);
    if (found == process_) {
      ended_ = true;
      wait_status_ = status;
    } else if (found < 0 && errno != EINTR) {
      ended_ = true;  // Somebody who waits for all children of this process was there first.
    } else if (waited >= seconds) {
      return false;
    } else {
      const struct timespec pause = {.tv_sec = 0, .tv_nsec = 2'000'000};
      nanosleep(&pause, nullptr);
    }
  }
  return true;
}

std::string SidecarProcess::DescribeEnd() {
  const std::string who = "the sidecar (process " + std::to_string(process_) + ") ";
  if (!AwaitEnd(kDescribeSeconds)) return who + "has closed the connection";
  if (wait_status_ >= 0 && WIFSIGNALED(wait_status_)) {
    return who + "was ended by signal " + std::to_string(WTERMSIG(wait_status_));
  }
  if (wait_status_ >= 0 && WIFEXITED(wait_status_)) {
    return who + "has ended with exit status " + std::to_string(WEXITSTATUS(wait_status_));
  }
  return who + "has ended";
}

void SidecarProcess::Drain() const {
  if (!forked() && !ended_) kill(process_, SIGTERM);
}

}  // namespace rubato::client
