#include "common/transport/loopback.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <grpc/support/sync.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "common/http/listen_address.h"
#include "common/sockets.h"

// What grpc::ChannelArguments::SetSocketMutator takes. gRPC's public headers name the type only; this is what it has
// been since 2016, and a function more since 1.33. It is called with each socket of the channel before that connects.
struct grpc_socket_mutator_vtable {
  bool (*mutate)(int descriptor, grpc_socket_mutator* self);
  int (*compare)(grpc_socket_mutator* one, grpc_socket_mutator* other);
  void (*destroy)(grpc_socket_mutator* self);
  // Taken in place of `mutate` if it is not null.
  bool (*mutate_for)(const void* descriptor_and_use, grpc_socket_mutator* self);
};
struct grpc_socket_mutator {
  const grpc_socket_mutator_vtable* vtable;
  gpr_refcount references;
};

namespace rubato {
namespace {

// Half a megabyte to two were the fastest; the smaller, the less cache they take.
constexpr int kBufferBytes = 1 << 20;
// For SendAhead::kLittle: 128 KiB to 384 KiB were faster than more.
constexpr int kLittleBytes = 1 << 18;

// The peer's port when it is a loopback address; -1 otherwise.
int LoopbackPort(const std::string& peer) {
  const bool loopback = absl::StartsWith(peer, "ipv4:127.") || absl::StartsWith(peer, "ipv6:%5B::1%5D:") ||
                        absl::StartsWith(peer, "ipv6:[::1]:");
  int port = -1;
  const absl::string_view digits = absl::string_view(peer).substr(peer.rfind(':') + 1);
  return loopback && absl::SimpleAtoi(digits, &port) ? port : -1;
}

// The same of a socket's other end; -1 too when it is no connected TCP socket.
int LoopbackPort(int descriptor) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return -1;
  if (address.ss_family == AF_INET) {
    sockaddr_in ip;
    std::memcpy(&ip, &address, sizeof(ip));
    return ntohl(ip.sin_addr.s_addr) >> 24 == 127 ? ntohs(ip.sin_port) : -1;
  }
  if (address.ss_family != AF_INET6) return -1;
  sockaddr_in6 ip;
  std::memcpy(&ip, &address, sizeof(ip));
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&ip.sin6_addr) && ip.sin6_addr.s6_addr[12] == 127;
  return mapped || IN6_IS_ADDR_LOOPBACK(&ip.sin6_addr) ? ntohs(ip.sin6_port) : -1;
}

// Of the process's sockets those that are connected to `port` on this machine.
std::vector<int> SocketsTo(int port) {
  std::vector<int> sockets;
  DIR* descriptors = opendir("/proc/self/fd");
  if (descriptors == nullptr) return sockets;
  while (const dirent* entry = readdir(descriptors)) {
    int descriptor = -1;
    if (absl::SimpleAtoi(entry->d_name, &descriptor) && LoopbackPort(descriptor) == port) sockets.push_back(descriptor);
  }
  closedir(descriptors);
  return sockets;
}

// One for all channels, which is never destroyed: the process has a reference.
grpc_socket_mutator* UnpacedSockets() {
  static const grpc_socket_mutator_vtable vtable = {
      .mutate =
          [](int descriptor, grpc_socket_mutator*) {
            SendUnpaced(descriptor);
            return true;
          },
      .compare = [](grpc_socket_mutator*, grpc_socket_mutator*) { return 0; },  // There is one.
      .destroy = [](grpc_socket_mutator*) {},
      .mutate_for = nullptr,
  };
  static grpc_socket_mutator* const mutator = [] {
    static grpc_socket_mutator made = {.vtable = &vtable, .references = {}};
    gpr_ref_init(&made.references, 1);
    return &made;
  }();
  gpr_ref(&mutator->references);
  return mutator;
}

void SetBytes(int socket, int option, int bytes) { setsockopt(socket, SOL_SOCKET, option, &bytes, sizeof(bytes)); }

}  // namespace

void TuneLoopbackChannel(const std::string& address, grpc::ChannelArguments* arguments) {
  if (IsLoopback(address)) arguments->SetSocketMutator(UnpacedSockets());
}

void TuneLoopbackSockets(const std::string& peer) {
  const int port = LoopbackPort(peer);
  if (port < 0) return;
  for (int socket : SocketsTo(port)) {
    SetBytes(socket, SO_SNDBUF, kBufferBytes);
    SetBytes(socket, SO_RCVBUF, kBufferBytes);
    SendUnpaced(socket);
  }
}

void SetLoopbackSendAhead(const std::string& peer, SendAhead ahead) {
  const int port = LoopbackPort(peer);
  if (port < 0) return;
  for (int socket : SocketsTo(port))
    SetBytes(socket, SO_SNDBUF, ahead == SendAhead::kLittle ? kLittleBytes : kBufferBytes);
}

}  // namespace rubato
