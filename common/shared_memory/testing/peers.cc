#include "common/shared_memory/testing/peers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/storage/file.h"

namespace rubato {

v1::TaskId TestWorker(uint32_t index) {
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  task.set_index(index);
  task.set_incarnation(1000 + index);
  return task;
}

std::string TestRegionName() { return "rubato-test-" + std::to_string(getpid()); }

std::shared_ptr<SharedRegion> TestRegion(size_t bytes, uint8_t first) {
  std::shared_ptr<SharedRegion> region = SharedRegion::Create(TestRegionName(), bytes).value();
  region->mutable_data()[0] = first;
  return region;
}

size_t OpenFileCount() { return ListDirectory("/proc/self/fd").value().size(); }

size_t MappingCount(const std::string& region_name) {
  const std::string maps = ReadFile("/proc/self/maps").value();
  const std::string wanted = "memfd:" + region_name + " ";
  size_t count = 0;
  for (size_t at = maps.find(wanted); at != std::string::npos; at = maps.find(wanted, at + 1)) ++count;
  return count;
}

bool SendRaw(const FileDescriptor& socket, const std::string& bytes, const std::vector<int>& descriptors) {
  iovec part = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const size_t rights_bytes = descriptors.size() * sizeof(int);
  std::vector<uint64_t> control((CMSG_SPACE(rights_bytes) + 7) / 8);
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(rights_bytes);
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(rights_bytes);
    std::memcpy(CMSG_DATA(rights), descriptors.data(), rights_bytes);
  }
  return sendmsg(socket.get(), &message, MSG_NOSIGNAL) >= 0;
}

FileDescriptor TestMemfd(size_t bytes, int seals) {
  FileDescriptor memfd(memfd_create("rubato-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (ftruncate(memfd.get(), static_cast<off_t>(bytes)) != 0) std::abort();
  if (seals != 0 && fcntl(memfd.get(), F_ADD_SEALS, seals) != 0) std::abort();
  return memfd;
}

TestServer::TestServer(SharedMemoryListener::Options options)
    : log_("test server", &clock_), region_(TestRegion(4096, 7)) {
  options.offered = region_;
  options.clock = &clock_;
  options.log = &log_;
  listener_ = SharedMemoryListener::Create(std::move(options)).value();
}

absl::StatusOr<std::unique_ptr<SharedMemoryLink>> TestServer::Connect(uint32_t worker,
                                                                      std::shared_ptr<SharedRegion> offered) {
  return SharedMemoryLink::Connect(listener_->address(), TestWorker(worker), offered, 1 << 20, kTestTimeout);
}

void ChildProcess::Channel::Send(const std::string& text) {
  if (send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE) std::abort();
}

std::string ChildProcess::Channel::Receive() {
  char text[256];
  const ssize_t received = recv(socket_.get(), text, sizeof(text), 0);
  return std::string(text, received > 0 ? static_cast<size_t>(received) : 0);
}

ChildProcess::ChildProcess(const std::function<void(Channel&)>& body) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  process_ = fork();
  if (process_ < 0) std::abort();
  if (process_ == 0) {
    close(ends[0]);
    Channel channel(ends[1]);
    body(channel);
    _exit(0);
  }
  close(ends[1]);
  channel_ = std::make_unique<Channel>(ends[0]);
}

void ChildProcess::Kill() {
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

}  // namespace rubato
