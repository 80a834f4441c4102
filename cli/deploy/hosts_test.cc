#include "cli/deploy/hosts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  return std::string(ParseHosts(text, "hosts.textproto").status().message());
}

TEST(HostsTest, FillsInWhatIsNotSaid) {
  absl::StatusOr<v1::HostsConfig> hosts = ParseHosts("hosts { host: 'a' workers: 1 } hosts { host: 'b' }", "h");
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ(hosts->hosts(1).directory(), "rubato");
  EXPECT_EQ(hosts->hosts(1).address(), "b");
  EXPECT_TRUE(hosts->hosts(0).coordinator());
  EXPECT_FALSE(hosts->hosts(1).coordinator());
}

TEST(HostsTest, NamesAllErrorsAtOnce) {
  const std::string error = ErrorOf(R"(
      coordinator_port: 70000
      hosts { host: "-oProxyCommand=x" workers: 2000 coordinator: true }
      hosts { user: "a b" directory: "~/rubato" coordinator: true }
      hosts { host: "c" } hosts { host: "c" directory: "a\nb" })");
  EXPECT_THAT(error, HasSubstr("coordinator_port: value 70000; allowed: 0 to 65535"));
  EXPECT_THAT(error, HasSubstr("hosts[0].host: value \"-oProxyCommand=x\""));
  EXPECT_THAT(error, HasSubstr("hosts[0].workers: value 2000; allowed: 0 to 1024"));
  EXPECT_THAT(error, HasSubstr("hosts[1].host"));
  EXPECT_THAT(error, HasSubstr("hosts[1].user: value \"a b\""));
  EXPECT_THAT(error, HasSubstr("hosts[1].directory: value \"~/rubato\""));
  EXPECT_THAT(error, HasSubstr("hosts[1].coordinator: value true again; allowed: one host"));
  EXPECT_THAT(error, HasSubstr("hosts[3].host: value \"c\" again"));
  EXPECT_THAT(error, HasSubstr("hosts[3].directory"));
}

TEST(HostsTest, NamesWhatIsWrongWithTheWorkersProgram) {
  const std::string error = ErrorOf(R"(hosts { host: "a" } worker_program {
      command: "" command: "a\nb" environment: "A=b c" environment: "A" environment: "=b" environment: "-i=" })");
  EXPECT_THAT(error, HasSubstr("worker_program.command[0]"));
  EXPECT_THAT(error, HasSubstr("worker_program.command[1]: value \"a\nb\"; allowed: a word without control"));
  EXPECT_THAT(error, ::testing::Not(HasSubstr("environment[0]")));
  EXPECT_THAT(error, HasSubstr("worker_program.environment[1]: value \"A\"; allowed: NAME=value"));
  EXPECT_THAT(error, HasSubstr("worker_program.environment[2]: value \"=b\""));
  EXPECT_THAT(error, HasSubstr("worker_program.environment[3]: value \"-i=\""));
  EXPECT_THAT(ErrorOf("hosts { host: 'a' } worker_program {}"),
              HasSubstr("worker_program.command: value 0; allowed: 1"));
}

TEST(HostsTest, RefusesATextThatIsNoHostsFile) {
  EXPECT_THAT(ErrorOf("hosts { hots: 'a' }"), HasSubstr("hosts.textproto:1:"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("hosts: value 0; allowed: 1 to 1024"));
}

TEST(HostsTest, ServerPortsEndAtTheHighestPort) {
  EXPECT_THAT(ErrorOf("server_port: 65535 hosts { host: 'a' servers: 2 }"), HasSubstr("value 65536"));
  EXPECT_EQ(ErrorOf("server_port: 65534 hosts { host: 'a' servers: 2 }"), "");
}

TEST(HostsTest, PutsIpv6AddressesInBrackets) {
  EXPECT_EQ(HostAndPort("10.0.0.1", 70), "10.0.0.1:70");
  EXPECT_EQ(HostAndPort("fd00::1", 70), "[fd00::1]:70");
  EXPECT_EQ(HostAndPort("[fd00::1]", 70), "[fd00::1]:70");
}

}  // namespace
}  // namespace rubato
