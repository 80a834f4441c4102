#include "bench/sparse/redis_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/push_pull/sockets.h"
#include "common/clock.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(30);
// What the shell says of a program that is not there.
constexpr int kNoProgram = 127;

std::string SocketIn(const std::string& directory) { return absl::StrCat(directory, "/redis"); }

}  // namespace

absl::StatusOr<std::unique_ptr<RedisServer>> RedisServer::Start() {
  std::string directory = (std::filesystem::temp_directory_path() / "rubato_redis_XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) return SystemError("mkdtemp");
  std::vector<std::string> words = {
      "redis-server", "--port", "0",     "--unixsocket", SocketIn(directory), "--save", "",
      "--appendonly", "no",     "--dir", directory,      "--loglevel",        "warning"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t process = fork();
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // It has much to say.
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDOUT_FILENO);
    execvp(argv[0], argv.data());
    _exit(kNoProgram);
  }
  std::unique_ptr<RedisServer> server(new RedisServer(directory, process));
  if (process < 0) return SystemError("fork");
  RUBATO_RETURN_IF_ERROR(server->AwaitReady());
  return server;
}

RedisServer::~RedisServer() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

absl::Status RedisServer::AwaitReady() {
  RealClock clock;
  for (const absl::Time deadline = clock.Now() + kTimeout; clock.Now() < deadline;) {
    if (Connect().ok()) return absl::OkStatus();
    int how = 0;
    if (waitpid(process_, &how, WNOHANG) == process_) {
      process_ = -1;
      if (WIFEXITED(how) && WEXITSTATUS(how) == kNoProgram) return absl::NotFoundError("redis-server is not there");
      return absl::UnavailableError("redis-server has ended; its standard error says why");
    }
    clock.Sleep(absl::Milliseconds(5));
  }
  return absl::DeadlineExceededError(absl::StrCat("redis-server is not ready after ", absl::FormatDuration(kTimeout)));
}

absl::StatusOr<FileDescriptor> RedisServer::Connect() const {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = SocketIn(directory_);
  if (path.size() >= sizeof(address.sun_path)) return absl::InvalidArgumentError(absl::StrCat(path, " is too long"));
  std::copy(path.begin(), path.end(), address.sun_path);
  FileDescriptor descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!descriptor.open()) return SystemError("socket");
  if (connect(descriptor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return descriptor;
  return SystemError(absl::StrCat("connect to ", path));
}

}  // namespace rubato::bench
