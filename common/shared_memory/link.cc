#include "common/shared_memory/link.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/shared_memory/boot_id.h"
#include "common/shared_memory/hello.h"
#include "common/shared_memory/unix_socket.h"
#include "common/status.h"

namespace rubato {
namespace {

absl::Status CheckHost(const v1::SharedMemoryAddress& address) {
  if (address.boot_id().empty()) return absl::InvalidArgumentError("boot_id: empty");
  RUBATO_ASSIGN_OR_RETURN(const std::string here, ReadBootId());
  if (address.boot_id() == here) return absl::OkStatus();
  return absl::FailedPreconditionError("the server is on another host");
}

struct Answer {
  uint64_t session = 0;
  std::shared_ptr<const SharedRegion> region;
};

absl::StatusOr<Answer> ReceiveAnswer(const FileDescriptor& socket, size_t peer_bytes_max, absl::Duration timeout) {
  absl::StatusOr<Packet> packet = ReceivePacket(socket);
  if (absl::IsOutOfRange(packet.status())) {
    return absl::DeadlineExceededError(absl::StrCat("no answer within ", absl::FormatDuration(timeout)));
  }
  RUBATO_RETURN_IF_ERROR(packet.status());
  Answer answer;
  RUBATO_ASSIGN_OR_RETURN(answer.session, DecodeWelcome(packet->bytes));
  if (packet->descriptors.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("an answer with ", packet->descriptors.size(), " descriptors; 1 is allowed"));
  }
  RUBATO_ASSIGN_OR_RETURN(answer.region, SharedRegion::Map(std::move(packet->descriptors[0]), peer_bytes_max));
  return answer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedMemoryLink>> SharedMemoryLink::Connect(
    const v1::SharedMemoryAddress& address, const v1::TaskId& self, const std::shared_ptr<const SharedRegion>& offered,
    size_t peer_bytes_max, absl::Duration timeout) {
  if (offered == nullptr || offered->descriptor() < 0) {
    return absl::InvalidArgumentError("offered: null or a peer's region; a region of one's own is allowed");
  }
  RUBATO_RETURN_IF_ERROR(CheckHost(address));
  RUBATO_ASSIGN_OR_RETURN(FileDescriptor socket, ConnectAbstract(address.socket(), timeout));
  // The name may have been taken by somebody else since the server's end.
  RUBATO_RETURN_IF_ERROR(CheckPeerUser(socket));
  RUBATO_RETURN_IF_ERROR(SendPacket(socket, EncodeHello(self), offered->descriptor()));
  absl::StatusOr<Answer> answer = ReceiveAnswer(socket, peer_bytes_max, timeout);
  if (!answer.ok()) return Annotate(answer.status(), "shared memory with the server");
  return std::unique_ptr<SharedMemoryLink>(
      new SharedMemoryLink(std::move(socket), answer->session, std::move(answer->region)));
}

}  // namespace rubato
