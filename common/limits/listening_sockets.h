#ifndef RUBATO_COMMON_LIMITS_LISTENING_SOCKETS_H_
#define RUBATO_COMMON_LIMITS_LISTENING_SOCKETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

namespace rubato {

struct ListeningSockets {
  // Which do not block.
  std::vector<FileDescriptor> sockets;
  // One for all.
  int port = 0;
};

// Listens on all addresses of the host in "host:port"; port 0 takes a free one. 0.0.0.0 and [::] stand for all of the
// machine's, of both families if it has both. InvalidArgument: it is not "host:port". Unavailable: the port is taken,
// or the host is not an address of this machine; the message says which.
absl::StatusOr<ListeningSockets> ListenOn(const std::string& address);

}  // namespace rubato

#endif  // RUBATO_COMMON_LIMITS_LISTENING_SOCKETS_H_
