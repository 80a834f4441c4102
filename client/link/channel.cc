#include "client/link/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>

namespace rubato::client {
namespace {

constexpr size_t kReadBytes = 16u << 10;

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Waits until the socket can be read or written. False: not until then.
bool AwaitSocket(int descriptor, short events, double deadline) {
  for (;;) {
    const double left = deadline - Now();
    struct pollfd poller = {.fd = descriptor, .events = events, .revents = 0};
    const int milliseconds = left <= 0 ? 0 : static_cast<int>(std::min(std::ceil(left * 1000), 1e6));
    const int ready = poll(&poller, 1, milliseconds);
    if (ready > 0) return true;
    if (ready == 0 && deadline - Now() <= 0) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

std::string ErrnoText(const char* what, int error) {
  char text[128] = "";
  return std::string(what) + ": " + strerror_r(error, text, sizeof(text));
}

}  // namespace

Channel::Channel(int descriptor) : descriptor_(descriptor) {
  fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) | O_NONBLOCK);
}

Channel::~Channel() {
  for (int passed : passed_) close(passed);
  close(descriptor_);
}

void Channel::Shutdown() { shutdown(descriptor_, SHUT_RDWR); }

std::string Channel::Send(FrameKind kind, uint32_t request, std::string_view body, int passed) {
  if (body.size() > kBodyBytesMax) return "a message of " + std::to_string(body.size()) + " bytes, over 64 MiB";
  const FrameHeader header{.kind = kind, .request = request, .body_bytes = static_cast<uint32_t>(body.size())};
  const std::lock_guard lock(sending_);
  held_.append(reinterpret_cast<const char*>(&header), sizeof(header));
  std::string error = Write(held_, body, passed);
  held_.clear();
  return error;
}

void Channel::Hold(FrameKind kind, std::string_view body) {
  const FrameHeader header{.kind = kind, .body_bytes = static_cast<uint32_t>(body.size())};
  const std::lock_guard lock(sending_);
  held_.append(reinterpret_cast<const char*>(&header), sizeof(header));
  held_.append(body);
}

std::string Channel::Write(std::string_view first, std::string_view second, int passed) {
  const double deadline = Now() + kSendSecondsMax;
  while (!first.empty() || !second.empty()) {
    struct iovec parts[2];
    size_t count = 0;
    for (std::string_view part : {first, second}) {
      if (!part.empty()) parts[count++] = {.iov_base = const_cast<char*>(part.data()), .iov_len = part.size()};
    }
    struct msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (passed >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      struct cmsghdr* const entry = CMSG_FIRSTHDR(&message);
      entry->cmsg_level = SOL_SOCKET;
      entry->cmsg_type = SCM_RIGHTS;
      entry->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(entry), &passed, sizeof(int));
    }
    const ssize_t bytes = sendmsg(descriptor_, &message, MSG_NOSIGNAL);
    if (bytes >= 0) {
      passed = -1;
      const size_t of_first = std::min(static_cast<size_t>(bytes), first.size());
      first.remove_prefix(of_first);
      second.remove_prefix(static_cast<size_t>(bytes) - of_first);
    } else if (errno == EAGAIN) {
      if (!AwaitSocket(descriptor_, POLLOUT, deadline)) return "the other side reads nothing";
    } else if (errno != EINTR) {
      return ErrnoText("sending", errno);
    }
  }
  return "";
}

Channel::Received Channel::Receive(Frame* frame, double seconds, std::string* error) {
  // What is not a number is no time.
  const double deadline = Now() + (seconds > 0 ? seconds : 0);
  for (;;) {
    const Received next = Next(frame, error);
    if (next != Received::kNothing) return next;
    if (!AwaitSocket(descriptor_, POLLIN, deadline)) return Received::kNothing;
    if (!Fill()) return Received::kClosed;
  }
}

bool Channel::Fill() {
  const size_t before = buffer_.size();
  buffer_.resize(before + kReadBytes);
  struct iovec part = {.iov_base = buffer_.data() + before, .iov_len = kReadBytes};
  alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t bytes = recvmsg(descriptor_, &message, MSG_CMSG_CLOEXEC);
  const int error = errno;
  buffer_.resize(before + (bytes > 0 ? static_cast<size_t>(bytes) : 0));
  if (bytes <= 0) return bytes < 0 && (error == EAGAIN || error == EINTR);
  for (struct cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr; entry = CMSG_NXTHDR(&message, entry)) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(entry), sizeof(int));
    passed_.push_back(descriptor);
  }
  return true;
}

Channel::Received Channel::Next(Frame* frame, std::string* error) {
  FrameHeader header;
  if (buffer_.size() < sizeof(header)) return Received::kNothing;
  std::memcpy(&header, buffer_.data(), sizeof(header));
  if (header.magic != kFrameMagic || header.version != kLinkVersion) {
    *error = "library and sidecar are of different versions: a message of version " + std::to_string(header.version) +
             ", not " + std::to_string(kLinkVersion);
    return Received::kBad;
  }
  if (header.body_bytes > kBodyBytesMax) {
    *error = "a message of " + std::to_string(header.body_bytes) + " bytes, over 64 MiB";
    return Received::kBad;
  }
  if (buffer_.size() - sizeof(header) < header.body_bytes) return Received::kNothing;
  frame->kind = header.kind;
  frame->request = header.request;
  frame->body.assign(buffer_, sizeof(header), header.body_bytes);
  buffer_.erase(0, sizeof(header) + header.body_bytes);
  return Received::kFrame;
}

int Channel::TakePassed() {
  if (passed_.empty()) return -1;
  const int descriptor = passed_.front();
  passed_.pop_front();
  return descriptor;
}

}  // namespace rubato::client
