#ifndef RUBATO_COMMON_HTTP_LISTEN_ADDRESS_H_
#define RUBATO_COMMON_HTTP_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rubato {

struct ListenAddress {
  // Without the brackets of an IPv6 address.
  std::string host;
  // 0: a free one.
  int port = 0;
};

// Reads "host:port". InvalidArgument: it is none, or the port is over 65535.
absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text);

// Whether "host:port", or a host, is of this machine's loopback, where nobody else can connect: "127.0.0.1",
// "localhost", "[::1]".
bool IsLoopback(absl::string_view address);

// "host:port" with another port.
std::string WithPort(const std::string& address, int port);

// Where others reach what listens on the port of `listen`: a wildcard host becomes this machine's name.
std::string ReachableAddress(const std::string& listen, int port);

}  // namespace rubato

#endif  // RUBATO_COMMON_HTTP_LISTEN_ADDRESS_H_
