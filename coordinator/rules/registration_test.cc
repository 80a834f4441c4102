#include "coordinator/rules/registration.h"

#include <gtest/gtest.h>

#include <string>

#include "common/task.h"

namespace rubato::coordinator {
namespace {

class RegistrationTest : public testing::Test {
 protected:
  RegistrationTest() {
    config_.mutable_cluster()->set_servers(2);
    config_.mutable_cluster()->set_workers(2);
    rules_ = {.config = &config_, .config_fingerprint = 0xabc, .train_examples = 100};
    task_.set_role(v1::TaskId::WORKER);
    task_.set_index(1);
    task_.set_incarnation(5);
    info_.set_protocol_version(kProtocolVersion);
    info_.set_config_fingerprint(0xabc);
    info_.set_train_examples(100);
  }
  std::string Check() { return std::string(CheckRegistration(rules_, task_, info_).message()); }

  v1::JobConfig config_;
  RegistrationRules rules_;
  v1::TaskId task_;
  v1::Register info_;
};

TEST_F(RegistrationTest, AcceptsAWorkerThatAgreesWithTheJob) { EXPECT_EQ(Check(), ""); }

TEST_F(RegistrationTest, NamesBothVersions) {
  info_.set_protocol_version(7);
  EXPECT_NE(Check().find("protocol version 7, the coordinator 1"), std::string::npos) << Check();
}

TEST_F(RegistrationTest, NamesBothFingerprints) {
  info_.set_config_fingerprint(0xdef);
  EXPECT_NE(Check().find("0000000000000def, the coordinator's 0000000000000abc"), std::string::npos) << Check();
}

TEST_F(RegistrationTest, NamesBothSizesOfTheTrainingSet) {
  info_.set_train_examples(99);
  EXPECT_NE(Check().find("99 examples, the other workers' 100"), std::string::npos) << Check();
}

TEST_F(RegistrationTest, ChecksTheIndexOfEachRole) {
  task_.set_index(1023);
  EXPECT_EQ(Check(), "");
  task_.set_index(1024);
  EXPECT_NE(Check(), "");
  task_.set_role(v1::TaskId::SERVER);
  task_.set_index(2);
  EXPECT_NE(Check().find("cluster.servers"), std::string::npos);
  task_.set_role(v1::TaskId::EVALUATOR);
  task_.set_index(0);
  EXPECT_NE(Check().find("cluster.evaluators"), std::string::npos);
  task_.set_role(v1::TaskId::COORDINATOR);
  EXPECT_NE(Check().find("task.role"), std::string::npos);
}

TEST_F(RegistrationTest, RefusesIncarnationZero) {
  task_.set_incarnation(0);
  EXPECT_NE(Check().find("task.incarnation"), std::string::npos);
}

TEST_F(RegistrationTest, RefusesWhatIsNoNameOfAHost) {
  info_.set_host_name("node-7.example");
  info_.set_metrics_address("[fe80::1%eth0]:9100");
  EXPECT_EQ(Check(), "");
  info_.set_host_name(std::string(256, 'x'));
  EXPECT_EQ(Check(), "worker 1 is refused: register.host_name: \"" + std::string(64, 'x') +
                         "\" has 256 bytes; allowed: up to 255 without spaces, of ASCII");
  info_.set_host_name("a\nb");
  EXPECT_NE(Check().find("register.host_name: \"a\\nb\" has 3 bytes"), std::string::npos) << Check();
  info_.set_host_name("");
  info_.set_metrics_address("a host:9100");
  EXPECT_NE(Check().find("register.metrics_address: "), std::string::npos) << Check();
  info_.set_metrics_address("");
  info_.set_address(std::string(4096, 'h') + ":9000");
  EXPECT_NE(Check().find("register.address: "), std::string::npos) << Check();
  info_.set_address("");
  info_.mutable_shared_memory()->set_socket(std::string(108, 's'));
  EXPECT_NE(Check().find("register.shared_memory.socket: "), std::string::npos) << Check();
}

TEST(PeerHost, KnowsTheFormsOfAPeerName) {
  EXPECT_EQ(PeerHost("ipv4:10.0.0.2:5555"), "10.0.0.2");
  EXPECT_EQ(PeerHost("ipv6:[::1]:5555"), "[::1]");
  EXPECT_EQ(PeerHost("ipv6:%5B::1%5D:5555"), "[::1]");
  EXPECT_EQ(PeerHost("unix:/tmp/socket"), "localhost");
}

TEST(ReachableAddress, FillsInTheHostThatTheCoordinatorSees) {
  EXPECT_EQ(*ReachableAddress(":9000", "ipv4:10.0.0.2:5555"), "10.0.0.2:9000");
  EXPECT_EQ(*ReachableAddress("0.0.0.0:9000", "ipv6:[fe80::1]:5555"), "[fe80::1]:9000");
  EXPECT_EQ(*ReachableAddress("[::]:9000", "ipv4:10.0.0.2:5555"), "10.0.0.2:9000");
  EXPECT_EQ(*ReachableAddress("node7:9000", "ipv4:10.0.0.2:5555"), "node7:9000");
}

TEST(ReachableAddress, RefusesAnAddressWithoutAPort) {
  for (const char* address : {"", "node7", "node7:", "node7:0", "node7:65536", "node7:x"}) {
    EXPECT_FALSE(ReachableAddress(address, "ipv4:10.0.0.2:5555").ok()) << address;
  }
}

}  // namespace
}  // namespace rubato::coordinator
