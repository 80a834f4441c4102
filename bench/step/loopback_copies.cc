#include "bench/step/loopback_copies.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "bench/push_pull/sockets.h"
#include "bench/push_pull/subject.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

// At a time; the sockets' buffers hold more.
constexpr size_t kPieceBytes = 256 << 10;

// What has been sent is usually there at once.
constexpr int kTimeoutMs = 10000;

}  // namespace

absl::StatusOr<std::unique_ptr<LoopbackCopies>> LoopbackCopies::Create() {
  const Setup setup;
  absl::StatusOr<int> sends = absl::InternalError("not connected");
  absl::StatusOr<int> receives =
      AcceptOne(setup, [&](const std::string& address) { sends = ConnectTo(setup, address); });
  if (receives.ok() && sends.ok()) return std::unique_ptr<LoopbackCopies>(new LoopbackCopies(*sends, *receives));
  if (receives.ok()) close(*receives);
  if (sends.ok()) close(*sends);
  return sends.ok() ? receives.status() : sends.status();
}

LoopbackCopies::~LoopbackCopies() {
  close(sends_);
  close(receives_);
}

absl::Status LoopbackCopies::Move(const void* data, size_t bytes, std::vector<char>* place) {
  if (place->size() < bytes) place->resize(bytes);
  const char* from = static_cast<const char*>(data);
  size_t sent = 0, received = 0;
  while (received < bytes) {
    if (const size_t left = std::min(kPieceBytes, bytes - sent); left > 0) {
      const ssize_t moved = send(sends_, from + sent, left, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (moved < 0 && errno != EAGAIN) return SystemError("send");
      sent += std::max<ssize_t>(moved, 0);
    }
    const ssize_t moved = recv(receives_, place->data() + received, bytes - received, MSG_DONTWAIT);
    if (moved < 0 && errno != EAGAIN) return SystemError("recv");
    if (moved == 0)
      return absl::InternalError(absl::StrCat("loopback: closed after ", received, " of ", bytes, " bytes"));
    received += std::max<ssize_t>(moved, 0);
    if (moved > 0) continue;
    pollfd waits = {receives_, POLLIN, 0};
    const int ready = poll(&waits, 1, kTimeoutMs);
    if (ready < 0 && errno != EINTR) return SystemError("poll");
    if (ready == 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("loopback: ", received, " of ", bytes, " bytes came, and no more for 10 seconds"));
    }
  }
  return absl::OkStatus();
}

}  // namespace rubato::bench
