#include "common/http/listen_address.h"

#include <unistd.h>

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace rubato {

absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not \"host:port\" with a port from 0 to 65535"));
  }
  ListenAddress address = {text.substr(0, colon), static_cast<int>(port)};
  if (address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  return address;
}

bool IsLoopback(absl::string_view address) {
  const size_t bracket = address.find(']');
  const absl::string_view host =
      bracket == absl::string_view::npos ? address.substr(0, address.find(':')) : address.substr(0, bracket + 1);
  return host == "127.0.0.1" || host == "localhost" || host == "[::1]";
}

std::string WithPort(const std::string& address, int port) {
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

std::string ReachableAddress(const std::string& listen, int port) {
  const std::string host = listen.substr(0, listen.rfind(':'));
  if (!host.empty() && host != "0.0.0.0" && host != "[::]") return WithPort(listen, port);
  char name[256] = "localhost";
  if (gethostname(name, sizeof(name) - 1) == 0) name[sizeof(name) - 1] = '\0';
  return absl::StrCat(name, ":", port);
}

}  // namespace rubato
