#include "common/http/testing/http_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <vector>

#include "absl/strings/match.h"

namespace rubato {
namespace {

// Appends what has come; false: it was the last.
bool Receive(const FileDescriptor& client, std::string* text) {
  std::vector<char> bytes(65536);
  const ssize_t size = recv(client.get(), bytes.data(), bytes.size(), 0);
  if (size > 0) text->append(bytes.data(), static_cast<size_t>(size));
  return size > 0;
}

}  // namespace

FileDescriptor ConnectTo(int port) {
  FileDescriptor client(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return client;
}

void Say(const FileDescriptor& client, absl::string_view text) {
  EXPECT_EQ(send(client.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

std::string Hear(const FileDescriptor& client) {
  std::string text;
  while (Receive(client, &text)) {
  }
  return text;
}

std::string HearUntil(const FileDescriptor& client, absl::string_view last) {
  std::string text;
  while (!absl::EndsWith(text, last) && Receive(client, &text)) {
  }
  return text;
}

std::string Ask(int port, absl::string_view request) {
  const FileDescriptor client = ConnectTo(port);
  Say(client, request);
  return Hear(client);
}

}  // namespace rubato
