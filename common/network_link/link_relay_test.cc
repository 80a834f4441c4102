#include "common/network_link/link_relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace rubato {
namespace {

// Answers every connection with what it is sent, until that ends.
class Echo {
 public:
  Echo() : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(own);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&own), size), 0);
    EXPECT_EQ(listen(listener_, 4), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(own.sin_port));
    thread_ = std::thread([this] {
      for (;;) {
        const int connection = accept(listener_, nullptr, nullptr);
        if (connection < 0) return;
        char buffer[4096];
        for (ssize_t count; (count = read(connection, buffer, sizeof(buffer))) > 0;) {
          for (ssize_t done = 0; done < count;) {
            const ssize_t written = send(connection, buffer + done, count - done, MSG_NOSIGNAL);
            if (written <= 0) break;
            done += written;
          }
        }
        close(connection);
      }
    });
  }
  ~Echo() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  const std::string& address() const { return address_; }

 private:
  const int listener_;
  std::string address_;
  std::thread thread_;
};

int Connect(const std::string& address) {
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in other = {};
  other.sin_family = AF_INET;
  other.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  other.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(connect(connection, reinterpret_cast<sockaddr*>(&other), sizeof(other)), 0);
  return connection;
}

// Sends the text, and reads as much.
std::string Exchange(int connection, const std::string& text) {
  std::thread sender([&] {
    for (size_t done = 0; done < text.size();) {
      const ssize_t written = send(connection, text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (written <= 0) return;
      done += static_cast<size_t>(written);
    }
  });
  std::string answer(text.size(), '\0');
  size_t got = 0;
  while (got < answer.size()) {
    const ssize_t count = read(connection, answer.data() + got, answer.size() - got);
    if (count <= 0) break;
    got += static_cast<size_t>(count);
  }
  sender.join();
  answer.resize(got);
  return answer;
}

std::string Bytes(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(i * 131 >> 3));
  return bytes;
}

class LinkRelayTest : public ::testing::Test {
 protected:
  std::unique_ptr<LinkRelay> Relay(const std::string& link) {
    auto relay = LinkRelay::Create(ParseLink(link).value(), &clock_);
    EXPECT_TRUE(relay.ok()) << relay.status();
    return *std::move(relay);
  }
  // How long it takes.
  absl::Duration Time(int connection, const std::string& text) {
    const absl::Time begin = clock_.Now();
    EXPECT_EQ(Exchange(connection, text), text);
    return clock_.Now() - begin;
  }

  RealClock clock_;
  Echo echo_;
};

// Lower bounds alone: how much later than that a busy machine is cannot be said.
TEST_F(LinkRelayTest, BytesTakeTheLatencyBothWays) {
  const auto relay = Relay("latency=30ms");
  const int connection = Connect(*relay->AddressFor(echo_.address()));
  EXPECT_GE(Time(connection, "hello"), absl::Milliseconds(60));
  close(connection);
}

TEST_F(LinkRelayTest, BytesTakeTheirTimeAtTheRate) {
  const auto relay = Relay("rate=80mbit");
  const int connection = Connect(*relay->AddressFor(echo_.address()));
  // 100 ms each way, of which most is at the same time.
  EXPECT_GE(Time(connection, Bytes(1'000'000)), absl::Milliseconds(100));
  close(connection);
}

TEST_F(LinkRelayTest, ConnectionsShareTheRate) {
  const auto relay = Relay("rate=80mbit");
  const std::string address = *relay->AddressFor(echo_.address());
  const int first = Connect(address);
  const absl::Time begin = clock_.Now();
  EXPECT_EQ(Exchange(first, Bytes(500'000)).size(), 500'000u);
  close(first);
  const int second = Connect(address);
  EXPECT_EQ(Exchange(second, Bytes(500'000)).size(), 500'000u);
  EXPECT_GE(clock_.Now() - begin, absl::Milliseconds(100));
  close(second);
}

TEST_F(LinkRelayTest, CarriesMoreThanItHoldsAtOnce) {
  const auto relay = Relay("latency=20ms,rate=10gbit");
  const int connection = Connect(*relay->AddressFor(echo_.address()));
  const std::string text = Bytes(20'000'000);
  EXPECT_EQ(Exchange(connection, text), text);
  close(connection);
}

TEST_F(LinkRelayTest, EndsAreCarriedToo) {
  const auto relay = Relay("latency=5ms");
  const int connection = Connect(*relay->AddressFor(echo_.address()));
  EXPECT_EQ(Exchange(connection, "last"), "last");
  shutdown(connection, SHUT_WR);
  char byte;
  EXPECT_EQ(read(connection, &byte, 1), 0);
  close(connection);
}

TEST_F(LinkRelayTest, ATargetThatIsNotThereBreaksTheConnection) {
  const auto relay = Relay("latency=1ms");
  // Nobody listens where somebody did.
  std::string gone;
  {
    Echo other;
    gone = other.address();
  }
  const int connection = Connect(*relay->AddressFor(gone));
  char byte;
  EXPECT_LE(read(connection, &byte, 1), 0);
  close(connection);
}

TEST_F(LinkRelayTest, BreaksConnectionsWhenItEnds) {
  auto relay = Relay("latency=1ms");
  const int connection = Connect(*relay->AddressFor(echo_.address()));
  EXPECT_EQ(Exchange(connection, "a"), "a");
  relay.reset();
  char byte;
  EXPECT_LE(read(connection, &byte, 1), 0);
  close(connection);
}

TEST_F(LinkRelayTest, OneAddressForOneTarget) {
  const auto relay = Relay("latency=1ms");
  EXPECT_EQ(relay->AddressFor(echo_.address()).value(), relay->AddressFor(echo_.address()).value());
  EXPECT_TRUE(absl::IsInvalidArgument(relay->AddressFor("nowhere").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(relay->AddressFor("127.0.0.1:http-no").status()));
}

}  // namespace
}  // namespace rubato
