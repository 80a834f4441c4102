#include "common/limits/listening_sockets.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rubato {
namespace {

// Whether a client of this address gets through to the port.
bool Reaches(const char* ip, int port) {
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, ip, &name.sin_addr);
  const FileDescriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(client.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0;
}

TEST(ListeningSocketsTest, ListensWhereItIsToldToAndNowhereElse) {
  const absl::StatusOr<ListeningSockets> loopback = ListenOn("127.0.0.1:0");
  ASSERT_TRUE(loopback.ok()) << loopback.status();
  EXPECT_TRUE(Reaches("127.0.0.1", loopback->port));
  EXPECT_FALSE(Reaches("127.0.0.2", loopback->port));
}

TEST(ListeningSocketsTest, AWildcardAndANameAreAllTheirAddresses) {
  for (const std::string address : {"0.0.0.0:0", "[::]:0", "localhost:0"}) {
    const absl::StatusOr<ListeningSockets> all = ListenOn(address);
    if (address == "[::]:0" && !all.ok()) continue;  // A machine without IPv6.
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_TRUE(Reaches("127.0.0.1", all->port)) << address;
  }
}

std::string CongestionControl(int socket) {
  char name[16] = {};
  socklen_t size = sizeof(name);
  EXPECT_EQ(getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
  return name;
}

TEST(ListeningSocketsTest, WhatComesOverLoopbackAloneIsNotPaced) {
  const FileDescriptor untouched(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (const std::string address : {"127.0.0.1:0", "localhost:0"}) {
    const absl::StatusOr<ListeningSockets> loopback = ListenOn(address);
    ASSERT_TRUE(loopback.ok()) << loopback.status();
    for (const FileDescriptor& socket : loopback->sockets) EXPECT_EQ(CongestionControl(socket.get()), "reno");
  }
  // Others come from a network, which is the system's matter.
  const absl::StatusOr<ListeningSockets> all = ListenOn("0.0.0.0:0");
  ASSERT_TRUE(all.ok()) << all.status();
  for (const FileDescriptor& socket : all->sockets) {
    EXPECT_EQ(CongestionControl(socket.get()), CongestionControl(untouched.get()));
  }
}

TEST(ListeningSocketsTest, SaysWhyItCannot) {
  const absl::StatusOr<ListeningSockets> first = ListenOn("127.0.0.1:0");
  ASSERT_TRUE(first.ok()) << first.status();
  for (const std::string host : {"127.0.0.1", "0.0.0.0", "localhost"}) {
    const std::string address = absl::StrCat(host, ":", first->port);
    const absl::Status taken = ListenOn(address).status();
    EXPECT_EQ(taken.code(), absl::StatusCode::kUnavailable) << address;
    EXPECT_TRUE(absl::StartsWith(taken.message(), absl::StrCat("cannot listen on ", address, ": the port is taken")))
        << taken;
  }
  EXPECT_TRUE(absl::StrContains(ListenOn("203.0.113.7:0").status().message(), "not an address of this machine"));
  for (const char* address : {"", "9100", ":9100", "localhost:", "localhost:65536", "localhost:http"}) {
    EXPECT_EQ(ListenOn(address).status().code(), absl::StatusCode::kInvalidArgument) << address;
  }
}

}  // namespace
}  // namespace rubato
