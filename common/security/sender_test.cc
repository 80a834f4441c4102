#include "common/security/sender.h"

#include <gtest/gtest.h>

#include "common/security/testing/expect_status.h"

namespace rubato {
namespace {

TEST(SenderTest, IsWhomTheCertificateNames) {
  const std::optional<Identity> worker = Identity{"mnist", Party::kWorker, 3};
  EXPECT_TRUE(CheckSender(worker, v1::TaskId::WORKER, 3).ok());
  ExpectStatus(CheckSender(worker, v1::TaskId::WORKER, 2), absl::StatusCode::kPermissionDenied,
               "the message says that it is of worker 2, and came with the certificate of worker 3");
  EXPECT_FALSE(CheckSender(worker, v1::TaskId::SERVER, 3).ok());
  EXPECT_FALSE(CheckSender(worker, v1::TaskId::ROLE_UNSPECIFIED, 3).ok());
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  task.set_index(3);
  task.set_incarnation(77);
  EXPECT_TRUE(CheckSender(worker, task).ok());
}

TEST(SenderTest, AnOperatorIsNoTask) {
  const std::optional<Identity> person = Identity{"mnist", Party::kOperator, 0};
  for (int role = 0; role <= 4; ++role) {
    EXPECT_FALSE(CheckSender(person, static_cast<v1::TaskId::Role>(role), 0).ok()) << role;
  }
}

TEST(SenderTest, WithoutACertificateTheMessageIsBelieved) {
  EXPECT_TRUE(CheckSender(std::nullopt, v1::TaskId::SERVER, 0).ok());
}

}  // namespace
}  // namespace rubato
