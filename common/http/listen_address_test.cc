#include "common/http/listen_address.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(ListenAddressTest, IsAHostAndAPort) {
  const auto address = ParseListenAddress("localhost:80");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->host, "localhost");
  EXPECT_EQ(address->port, 80);
  EXPECT_EQ(ParseListenAddress("[::1]:0")->host, "::1");
}

TEST(ListenAddressTest, OtherTextIsNamedAsItIs) {
  for (const char* text : {"", "9100", ":9100", "localhost:", "localhost:65536", "localhost:http", "localhost:-1"}) {
    const absl::Status status = ParseListenAddress(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(status.message().find(text), absl::string_view::npos) << text;
  }
}

TEST(ListenAddressTest, KnowsLoopback) {
  for (const char* address : {"127.0.0.1:0", "localhost:80", "[::1]:80", "localhost"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  for (const char* address : {"0.0.0.0:0", "[::]:80", "10.0.0.1:80", "localhost.example:80", "", "127.0.0.1.example"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
}

TEST(ListenAddressTest, OthersReachAWildcardByTheMachinesName) {
  EXPECT_EQ(WithPort("[::1]:0", 80), "[::1]:80");
  EXPECT_EQ(ReachableAddress("localhost:0", 80), "localhost:80");
  EXPECT_EQ(ReachableAddress("[::1]:0", 80), "[::1]:80");
  const std::string reachable = ReachableAddress("0.0.0.0:0", 80);
  EXPECT_EQ(reachable.find("0.0.0.0"), std::string::npos) << reachable;
  EXPECT_EQ(reachable, ReachableAddress("[::]:0", 80));
}

}  // namespace
}  // namespace rubato
