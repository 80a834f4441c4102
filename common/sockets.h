#ifndef RUBATO_COMMON_SOCKETS_H_
#define RUBATO_COMMON_SOCKETS_H_

#include <sys/socket.h>

#include <cstddef>
#include <string>

namespace rubato {

// What those who listen on sockets of their own have in common.

// The port that a socket is bound to; 0: it has none.
int PortOf(int socket);

// Of an address, without its port; an IPv4 address as such, also where it comes through IPv6.
std::string HostOf(const sockaddr_storage& name, socklen_t size);

// Takes a congestion control that does not pace (Reno), for connections within a machine: pacing (BBR's, which some
// systems have as their default) makes them wait for timers. Before the socket connects or listens, since a connection
// that has once been paced stays so; accepted ones have it from their listener. What the system does not allow is left
// as it is.
void SendUnpaced(int socket);

// Whether accepting failed, with this errno, because process or machine has no descriptors or memory left. Whoever
// waits can be accepted later; other errors are of the one connection.
bool IsOutOfDescriptors(int error);

// Of this process's descriptors, the lowest of those that connections are not to get, so that `spare` are left for
// everything else, or a quarter if it may have few at all. The system gives the lowest number that is free.
int FirstSparedDescriptor(size_t spare);

}  // namespace rubato

#endif  // RUBATO_COMMON_SOCKETS_H_
