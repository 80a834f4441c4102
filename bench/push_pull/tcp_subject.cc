#include "bench/push_pull/tcp_subject.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "bench/push_pull/client_memory.h"
#include "bench/push_pull/server_memory.h"
#include "bench/push_pull/sockets.h"
#include "common/clock.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

// What the server receives at a time: it stays in the cache until it is added.
constexpr int64_t kPieceBytes = 128 << 10;

absl::Status SendAll(int descriptor, const char* data, int64_t size) {
  while (size > 0) {
    const ssize_t sent = send(descriptor, data, size, MSG_NOSIGNAL);
    if (sent < 0) return SystemError("send");
    data += sent;
    size -= sent;
  }
  return absl::OkStatus();
}

// Returns false at the end of the connection.
absl::StatusOr<bool> ReceiveAll(int descriptor, char* data, int64_t size) {
  while (size > 0) {
    const ssize_t received = recv(descriptor, data, size, MSG_WAITALL);
    if (received < 0) return SystemError("recv");
    if (received == 0) return false;
    data += received;
    size -= received;
  }
  return true;
}

class TcpClient : public Client {
 public:
  TcpClient(const Setup& setup, int descriptor) : setup_(setup), memory_(setup), descriptor_(descriptor) {}
  ~TcpClient() override { close(descriptor_); }

  absl::StatusOr<Count> Run(absl::Duration duration) override {
    const absl::Time begin = clock_.Now();
    const int64_t before = received_;
    for (;;) {
      const bool may_begin = clock_.Now() - begin < duration;
      if (!may_begin && received_ == sent_) break;  // Nothing would come any more.
      RUBATO_RETURN_IF_ERROR(Turn(sending_ > 0 || (may_begin && sent_ - received_ < setup_.in_flight)));
    }
    return Count{received_ - before, clock_.Now() - begin};
  }

  absl::Status Verify() override { return memory_.Verify(); }

 private:
  // Moves what can be moved; waits if that is nothing.
  absl::Status Turn(bool wants_to_send) {
    if (!wants_to_send) return ReceiveSome(/*flags=*/0).status();
    RUBATO_ASSIGN_OR_RETURN(const bool sent, SendSome());
    if (sent) return absl::OkStatus();
    RUBATO_ASSIGN_OR_RETURN(const bool received, ReceiveSome(MSG_DONTWAIT));
    if (received) return absl::OkStatus();
    pollfd waits = {descriptor_, POLLIN | POLLOUT, 0};
    if (poll(&waits, 1, 100) < 0) return SystemError("poll");
    return absl::OkStatus();
  }

  absl::StatusOr<bool> SendSome() {
    if (sending_ == 0) ++sent_;
    const char* data = reinterpret_cast<const char*>(memory_.Gradient((sent_ - 1) % setup_.chunks()));
    const ssize_t moved = send(descriptor_, data + sending_, setup_.size - sending_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (moved < 0 && errno != EAGAIN) return SystemError("send");
    if (moved <= 0 && sending_ == 0) --sent_;
    sending_ = (sending_ + std::max<ssize_t>(moved, 0)) % setup_.size;
    return moved > 0;
  }

  absl::StatusOr<bool> ReceiveSome(int flags) {
    const int64_t chunk = received_ % setup_.chunks();
    char* data = reinterpret_cast<char*>(memory_.Weights(chunk));
    const ssize_t moved = recv(descriptor_, data + receiving_, setup_.size - receiving_, flags);
    if (moved < 0 && errno != EAGAIN) return SystemError("recv");
    if (moved == 0) return absl::UnavailableError("the server is gone");
    receiving_ += std::max<ssize_t>(moved, 0);
    if (receiving_ == setup_.size) {
      receiving_ = 0;
      memory_.CountTrip(chunk);
      ++received_;
    }
    return moved > 0;
  }

  const Setup setup_;
  ClientMemory memory_;
  const int descriptor_;
  RealClock clock_;
  // Messages begun, and weights that have come.
  int64_t sent_ = 0;
  int64_t received_ = 0;
  // Bytes of the present one that are done; 0 between two.
  int64_t sending_ = 0;
  int64_t receiving_ = 0;
};

}  // namespace

absl::Status ServeTcp(const Setup& setup, const Ready& ready) {
  ServerMemory memory(setup);
  std::vector<char> piece(std::min(setup.size, kPieceBytes));
  RUBATO_ASSIGN_OR_RETURN(const int descriptor, AcceptOne(setup, ready));
  for (int64_t chunk = 0;; chunk = (chunk + 1) % setup.chunks()) {
    float* weights = memory.Weights(chunk);
    for (int64_t done = 0; done < setup.size; done += static_cast<int64_t>(piece.size())) {
      RUBATO_ASSIGN_OR_RETURN(const bool more,
                              ReceiveAll(descriptor, piece.data(), static_cast<int64_t>(piece.size())));
      if (!more) return absl::OkStatus();
      AddFloats(piece.data(), static_cast<int64_t>(piece.size() / sizeof(float)), weights + done / sizeof(float));
    }
    RUBATO_RETURN_IF_ERROR(SendAll(descriptor, reinterpret_cast<const char*>(weights), setup.size));
  }
}

absl::StatusOr<std::unique_ptr<Client>> ConnectTcp(const Setup& setup, const std::string& address) {
  RUBATO_ASSIGN_OR_RETURN(const int descriptor, ConnectTo(setup, address));
  return std::make_unique<TcpClient>(setup, descriptor);
}

}  // namespace rubato::bench
