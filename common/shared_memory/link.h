#ifndef RUBATO_COMMON_SHARED_MEMORY_LINK_H_
#define RUBATO_COMMON_SHARED_MEMORY_LINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/file_descriptor.h"
#include "common/shared_memory/region.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// A worker's side of shared memory with one server: the two have exchanged regions, each writes its own and reads the
// other's. While the link lives the server knows its session; the end of the link, or of this process, tells the server
// that the session is over. The server's region stays mapped and readable when the server is gone. Immutable, so
// thread-safe.
//
//   auto link = SharedMemoryLink::Connect(server.shared_memory(), self, arena->shared_region(), bytes_max, timeout);
//   request.set_shared_session((*link)->session());
//   const uint8_t* weights = (*link)->peer().Find(span.offset(), span.bytes());
class SharedMemoryLink {
 public:
  // Offers `offered`, a region of this process's own, and takes a server's region of at most `peer_bytes_max`. Waits up
  // to `timeout` for the connection and as long again for the answer. Whatever it returns, the two can still talk
  // without shared memory:
  // - FailedPrecondition: the address is of another host, as must be expected in a cluster.
  // - Unavailable: nobody listens there (gone, or in another network namespace), or it hung up.
  // - DeadlineExceeded: no answer in time.
  // - PermissionDenied: the listener is of another user. It has been sent nothing.
  // - InvalidArgument: an argument is out of range, or the server's answer or region is not as it must be.
  // - What a server that refuses gives as its reason, with its code: ResourceExhausted when it has no place left.
  static absl::StatusOr<std::unique_ptr<SharedMemoryLink>> Connect(const v1::SharedMemoryAddress& address,
                                                                   const v1::TaskId& self,
                                                                   const std::shared_ptr<const SharedRegion>& offered,
                                                                   size_t peer_bytes_max, absl::Duration timeout);

  // Names this link in messages to the server (ExchangeRequest.shared_session). Never 0.
  uint64_t session() const { return session_; }
  const SharedRegion& peer() const { return *peer_; }
  // For whoever reads on after the link's end.
  const std::shared_ptr<const SharedRegion>& shared_peer() const { return peer_; }

 private:
  SharedMemoryLink(FileDescriptor socket, uint64_t session, std::shared_ptr<const SharedRegion> peer)
      : socket_(std::move(socket)), session_(session), peer_(std::move(peer)) {}

  const FileDescriptor socket_;
  const uint64_t session_;
  const std::shared_ptr<const SharedRegion> peer_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_SHARED_MEMORY_LINK_H_
