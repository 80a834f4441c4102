// Every method of every service, asked by everybody: refused, or let through to its handler, as the table says.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "common/security/credentials.h"
#include "common/security/job_token.h"
#include "common/security/permissions.h"
#include "proto/coordinator.grpc.pb.h"
#include "proto/parameter_server.grpc.pb.h"
#include "proto/part_copies.grpc.pb.h"
#include "tests/security/certified_job.h"

namespace rubato {
namespace {

constexpr Party kParties[] = {Party::kCoordinator, Party::kServer, Party::kWorker, Party::kEvaluator, Party::kOperator};

// All of our services on one port. Their handlers answer UNIMPLEMENTED, which tells a call that was let through from
// one that was not.
class MatrixTest : public testing::Test {
 protected:
  ~MatrixTest() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  void Serve(std::shared_ptr<const TaskSecurity> security) {
    security_ = std::move(security);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", ServerCredentialsOf(security_.get()), &port_);
    builder.RegisterService(&coordinator_);
    builder.RegisterService(&server_service_);
    builder.RegisterService(&parts_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  absl::StatusCode Call(const TaskSecurity* caller, absl::string_view method) {
    return CallMethod(port_, Party::kCoordinator, caller, std::string(method)).code();
  }
  // Whoever calls whatever is answered so.
  void ExpectNothingFor(const TaskSecurity* caller, absl::StatusCode code, const std::string& who) {
    for (const Permission& permission : Permissions()) {
      const bool open = permission.is_public && code == absl::StatusCode::kUnauthenticated;
      EXPECT_EQ(Call(caller, permission.method), open ? absl::StatusCode::kUnimplemented : code)
          << who << " calls " << permission.method;
    }
  }

 private:
  std::shared_ptr<const TaskSecurity> security_;
  v1::Coordinator::Service coordinator_;
  v1::ParameterServer::Service server_service_;
  v1::PartCopies::Service parts_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

TEST_F(MatrixTest, ACertificateOpensWhatTheTableSaysAndNoMore) {
  const CertifiedJob job("job");
  Serve(job.As(Party::kCoordinator));
  int allowed = 0;
  int refused = 0;
  for (const Party party : kParties) {
    const std::shared_ptr<const TaskSecurity> caller = job.As(party);
    for (const Permission& permission : Permissions()) {
      const bool may = permission.is_public || permission.parties.Has(party);
      ++(may ? allowed : refused);
      EXPECT_EQ(Call(caller.get(), permission.method),
                may ? absl::StatusCode::kUnimplemented : absl::StatusCode::kPermissionDenied)
          << PartyText(party, 0) << " calls " << permission.method;
    }
    EXPECT_EQ(Call(caller.get(), "/rubato.v1.Coordinator/NoSuchMethod"), absl::StatusCode::kPermissionDenied);
  }
  EXPECT_GT(allowed, 20);
  EXPECT_GT(refused, 40);
}

TEST_F(MatrixTest, WithoutTlsThereIsNoAnswer) {
  const CertifiedJob job("job");
  Serve(job.As(Party::kCoordinator));
  ExpectNothingFor(nullptr, absl::StatusCode::kUnavailable, "somebody without TLS");
}

TEST_F(MatrixTest, AnotherAuthorityOpensNothing) {
  const CertifiedJob job("job");
  Serve(job.As(Party::kCoordinator));
  const CertifiedJob other("other");
  for (const Party party : {Party::kWorker, Party::kOperator}) {
    ExpectNothingFor(other.As(party).get(), absl::StatusCode::kUnavailable, "a stranger");
  }
}

TEST_F(MatrixTest, AnExpiredCertificateOpensNothing) {
  const absl::Time before = absl::Now() - absl::Hours(72);
  const CertifiedJob expired("job", "mnist", before);
  // The same authority's, and good now.
  ASSERT_TRUE(
      WriteCredentials(expired.folder(), "mnist", {{"mnist", Party::kCoordinator, 0}}, {absl::Now(), absl::Hours(24)})
          .ok());
  Serve(expired.As(Party::kCoordinator));
  for (const Party party : {Party::kWorker, Party::kOperator}) {
    ExpectNothingFor(expired.As(party, 0, before).get(), absl::StatusCode::kUnavailable, "somebody of yesterday");
  }
}

TEST_F(MatrixTest, AnotherJobOfTheSameAuthorityOpensNothing) {
  const CertifiedJob job("job");
  Serve(job.As(Party::kCoordinator));
  // In the same folder; the server has read its own before.
  const CertifiedJob other("job", "other");
  for (const Party party : {Party::kWorker, Party::kOperator}) {
    ExpectNothingFor(other.As(party).get(), absl::StatusCode::kUnavailable, "another job's");
  }
}

TEST_F(MatrixTest, ATokenOpensEverythingAndItsAbsenceNothing) {
  const std::string folder = testing::TempDir() + "/token";
  ASSERT_TRUE(MakeJobToken(folder).ok());
  const auto open = [](const std::string& credentials) {
    return *TaskSecurity::Create({.credentials = credentials, .now = absl::Now()});
  };
  Serve(open(folder));
  const std::shared_ptr<const TaskSecurity> member = open(folder);
  for (const Permission& permission : Permissions()) {
    EXPECT_EQ(Call(member.get(), permission.method), absl::StatusCode::kUnimplemented) << permission.method;
  }
  EXPECT_EQ(Call(member.get(), "/rubato.v1.Coordinator/NoSuchMethod"), absl::StatusCode::kPermissionDenied);
  ExpectNothingFor(nullptr, absl::StatusCode::kUnauthenticated, "somebody without a token");
  const std::string other = testing::TempDir() + "/other";
  ASSERT_TRUE(MakeJobToken(other).ok());
  ExpectNothingFor(open(other).get(), absl::StatusCode::kUnauthenticated, "somebody with another job's token");
}

}  // namespace
}  // namespace rubato
