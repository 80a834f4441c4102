#ifndef RUBATO_COMMON_TRANSPORT_LOOPBACK_H_
#define RUBATO_COMMON_TRANSPORT_LOOPBACK_H_

#include <string>

namespace rubato {

// Which end of a connection this process has.
enum class LoopbackSide { kClient, kServer };

// Makes this process's connections to `peer`, as gRPC names it ("ipv4:127.0.0.1:7000"), fast if that is a loopback
// address; does nothing elsewhere. Congestion control is made for networks: the paced kinds (BBR), which some systems
// have as their default, halve what loopback carries, and so do buffers that grow beyond the cache. gRPC has no option
// for either and does not show its sockets, hence they are looked for among the process's descriptors. What the system
// does not allow is left as it is. Thread-safe.
void TuneLoopbackSockets(const std::string& peer, LoopbackSide side);

}  // namespace rubato

#endif  // RUBATO_COMMON_TRANSPORT_LOOPBACK_H_
