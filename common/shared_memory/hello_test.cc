#include "common/shared_memory/hello.h"

#include <gtest/gtest.h>

#include <string>

namespace rubato {
namespace {

v1::TaskId Task(v1::TaskId::Role role, uint32_t index, uint64_t incarnation) {
  v1::TaskId task;
  task.set_role(role);
  task.set_index(index);
  task.set_incarnation(incarnation);
  return task;
}

void ExpectRefused(const absl::Status& status, const std::string& reason) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(std::string(status.message()).find(reason), std::string::npos) << status;
}

TEST(HelloTest, CarriesTheTask) {
  const std::string bytes = EncodeHello(Task(v1::TaskId::EVALUATOR, 3, 0xfedcba9876543210u));
  EXPECT_EQ(bytes.size(), 32u);
  const v1::TaskId task = DecodeHello(bytes).value();
  EXPECT_EQ(task.role(), v1::TaskId::EVALUATOR);
  EXPECT_EQ(task.index(), 3u);
  EXPECT_EQ(task.incarnation(), 0xfedcba9876543210u);
}

TEST(HelloTest, RefusesEveryCutAndLongerHello) {
  const std::string bytes = EncodeHello(Task(v1::TaskId::WORKER, 0, 1));
  for (size_t i = 0; i < bytes.size(); ++i) EXPECT_FALSE(DecodeHello(bytes.substr(0, i)).ok()) << i;
  ExpectRefused(DecodeHello(bytes + "x").status(), "a hello of 33 bytes; 32 were expected");
}

TEST(HelloTest, RefusesGarbageAndOtherVersions) {
  ExpectRefused(DecodeHello(std::string(32, 'x')).status(), "is no hello");
  std::string bytes = EncodeHello(Task(v1::TaskId::WORKER, 0, 1));
  bytes[8] = 2;
  ExpectRefused(DecodeHello(bytes).status(), "version 2; version 1 is allowed");
  bytes[8] = 1;
  bytes[20] = 1;
  ExpectRefused(DecodeHello(bytes).status(), "bytes 20-23: 1");
}

TEST(HelloTest, RefusesTasksThatTakeNoPart) {
  ExpectRefused(DecodeHello(EncodeHello(Task(v1::TaskId::SERVER, 0, 1))).status(), "role: 2; 3 (WORKER)");
  ExpectRefused(DecodeHello(EncodeHello(Task(v1::TaskId::WORKER, 0, 0))).status(), "incarnation: 0");
}

TEST(WelcomeTest, CarriesTheSession) {
  EXPECT_EQ(DecodeWelcome(EncodeWelcome(uint64_t{0xfedcba9876543210u})).value(), 0xfedcba9876543210u);
}

TEST(WelcomeTest, CarriesTheRefusal) {
  const absl::Status reason = absl::ResourceExhaustedError("full");
  EXPECT_EQ(DecodeWelcome(EncodeWelcome(reason)).status(), absl::ResourceExhaustedError("refused: full"));
  EXPECT_EQ(DecodeWelcome(EncodeWelcome(absl::InternalError(""))).status(), absl::InternalError("refused: "));
  const absl::Status longer = absl::InternalError(std::string(1000, 'x'));
  EXPECT_EQ(DecodeWelcome(EncodeWelcome(longer)).status(), absl::InternalError("refused: " + std::string(231, 'x')));
}

TEST(WelcomeTest, RefusesWhatIsNoWelcome) {
  const std::string bytes = EncodeWelcome(uint64_t{1});
  for (size_t i = 0; i < bytes.size(); ++i) EXPECT_FALSE(DecodeWelcome(bytes.substr(0, i)).ok()) << i;
  ExpectRefused(DecodeWelcome(EncodeHello(Task(v1::TaskId::WORKER, 0, 1))).status(), "32 bytes; 256 were expected");
  ExpectRefused(DecodeWelcome(EncodeWelcome(uint64_t{0})).status(), "session: 0");
  std::string unknown_code = bytes;
  unknown_code[12] = 17;
  ExpectRefused(DecodeWelcome(unknown_code).status(), "code: 17; 0 to 16 are allowed");
}

}  // namespace
}  // namespace rubato
