#include "common/security/task_security.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/grpc_status.h"
#include "common/security/credentials.h"
#include "common/security/job_token.h"
#include "common/security/testing/expect_status.h"
#include "common/storage/file.h"
#include "proto/coordinator.grpc.pb.h"

namespace rubato {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);

// Answers GetStatus, and nothing else.
class StatusService final : public v1::Coordinator::Service {
  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest*, v1::JobStatus* reply) override {
    // What proves who calls is not for handlers.
    EXPECT_EQ(context->client_metadata().count("authorization"), 0u);
    reply->set_job_name("mnist");
    return grpc::Status::OK;
  }
};

class TaskSecurityTest : public testing::Test {
 protected:
  ~TaskSecurityTest() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  std::string Folder(const std::string& name) {
    return JoinPath(testing::TempDir(),
                    absl::StrCat(testing::UnitTest::GetInstance()->current_test_info()->name(), "-", name));
  }
  // Of a coordinator, a server, a worker and an operator.
  std::string Certificates(const std::string& name, const std::string& job = "mnist", absl::Time begin = absl::Now()) {
    const std::string folder = Folder(name);
    const absl::Status written = WriteCredentials(
        folder, job,
        {{job, Party::kCoordinator, 0}, {job, Party::kServer, 0}, {job, Party::kWorker, 0}, {job, Party::kOperator, 0}},
        {begin, kDay});
    EXPECT_TRUE(written.ok()) << written;
    return folder;
  }
  static std::shared_ptr<const TaskSecurity> Open(const std::string& folder, Party party,
                                                  absl::Time now = absl::Now()) {
    auto security = TaskSecurity::Create({.credentials = folder, .party = party, .now = now});
    EXPECT_TRUE(security.ok()) << security.status();
    return *std::move(security);
  }

  void Serve(std::shared_ptr<const TaskSecurity> security) {
    serving_ = std::move(security);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", ServerCredentialsOf(serving_.get()), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  // What GetStatus answers to somebody who takes the server for `to`.
  absl::Status Call(const TaskSecurity* security, Party to = Party::kCoordinator) {
    const auto stub = v1::Coordinator::NewStub(OpenChannel(absl::StrCat("127.0.0.1:", port_), to, 0, security, {}));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::JobStatus reply;
    const absl::Status status = FromGrpcStatus(stub->GetStatus(&context, {}, &reply));
    EXPECT_EQ(status.ok(), reply.job_name() == "mnist");
    return status;
  }

 private:
  std::shared_ptr<const TaskSecurity> serving_;
  StatusService service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

TEST_F(TaskSecurityTest, CertificatesOfTheJobAreLetIn) {
  const std::string folder = Certificates("job");
  Serve(Open(folder, Party::kCoordinator));
  const absl::Status called = Call(Open(folder, Party::kOperator).get());
  EXPECT_TRUE(called.ok()) << called;
  ExpectStatus(Call(Open(folder, Party::kWorker).get()), absl::StatusCode::kPermissionDenied,
               "worker 0 may not call /rubato.v1.Coordinator/GetStatus");
}

TEST_F(TaskSecurityTest, StrangersFindNoConnection) {
  const std::string folder = Certificates("job");
  Serve(Open(folder, Party::kCoordinator));
  EXPECT_EQ(Call(nullptr).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Call(Open(Certificates("other authority"), Party::kOperator).get()).code(), absl::StatusCode::kUnavailable);
  const std::string token = Folder("token");
  ASSERT_TRUE(MakeJobToken(token).ok());
  EXPECT_EQ(Call(Open(token, Party::kOperator).get()).code(), absl::StatusCode::kUnavailable);
}

// One authority may vouch for several jobs.
TEST_F(TaskSecurityTest, AnotherJobOfTheSameAuthorityIsRefused) {
  const std::string folder = Certificates("job");
  Serve(Open(folder, Party::kCoordinator));
  Certificates("job", "other");
  EXPECT_EQ(Call(Open(folder, Party::kOperator).get()).code(), absl::StatusCode::kUnavailable);
}

TEST_F(TaskSecurityTest, AnExpiredCertificateIsRefusedOnBothSides) {
  const absl::Time before = absl::Now() - 3 * kDay;
  const std::string folder = Certificates("job", "mnist", before);
  ASSERT_TRUE(WriteCredentials(folder, "mnist", {{"mnist", Party::kCoordinator, 0}}, {absl::Now(), kDay}).ok());
  Serve(Open(folder, Party::kCoordinator));
  ExpectStatus(TaskSecurity::Create({.credentials = folder, .party = Party::kOperator, .now = absl::Now()}),
               absl::StatusCode::kFailedPrecondition, "operator.crt: has expired on");
  // Of one that was good when the task began.
  const std::shared_ptr<const TaskSecurity> late = Open(folder, Party::kOperator, before);
  EXPECT_EQ(Call(late.get()).code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(late->ExpiryWarning(absl::Now()).find("has expired on"), std::string::npos);
  EXPECT_NE(late->ExpiryWarning(before).find("expires in 24.0 hours"), std::string::npos);
}

TEST_F(TaskSecurityTest, NobodyIsTakenForSomebodyElse) {
  const std::string folder = Certificates("job");
  Serve(Open(folder, Party::kWorker));
  ExpectStatus(Call(Open(folder, Party::kOperator).get()), absl::StatusCode::kUnavailable,
               "the certificate is that of worker 0, not of coordinator");
}

TEST_F(TaskSecurityTest, NewCertificatesAreTakenWithoutARestart) {
  const std::string folder = Certificates("job");
  Serve(Open(folder, Party::kCoordinator));
  const std::shared_ptr<const TaskSecurity> client = Open(folder, Party::kOperator);
  ASSERT_TRUE(Call(client.get()).ok());
  // The next authority is believed beside this one, before anybody has its certificates.
  const std::string next = Certificates("next");
  const std::string both = absl::StrCat(*ReadFile(JoinPath(folder, "ca.crt")), *ReadFile(JoinPath(next, "ca.crt")));
  ASSERT_TRUE(WriteFileAtomically(JoinPath(folder, "ca.crt"), both).ok());
  const std::shared_ptr<const TaskSecurity> renewed = Open(next, Party::kOperator);
  ASSERT_TRUE(WriteFileAtomically(JoinPath(next, "ca.crt"), both).ok());
  absl::Status called;
  for (const absl::Time end = absl::Now() + absl::Seconds(60); absl::Now() < end; usleep(500'000)) {
    called = Call(renewed.get());
    if (called.ok()) break;
  }
  EXPECT_TRUE(called.ok()) << called;
  EXPECT_TRUE(Call(client.get()).ok());
}

TEST_F(TaskSecurityTest, TheTokenOfTheJobIsLetIn) {
  const std::string folder = Folder("token");
  Serve(Open(folder, Party::kCoordinator));
  const std::shared_ptr<const TaskSecurity> client = Open(folder, Party::kOperator);
  // Its coordinator has not made it yet.
  ExpectStatus(Call(client.get()), absl::StatusCode::kUnavailable, "job.token");
  ASSERT_TRUE(MakeJobToken(folder).ok());
  const absl::Status called = Call(client.get());
  EXPECT_TRUE(called.ok()) << called;
}

TEST_F(TaskSecurityTest, WithoutTheTokenNothingIsAnswered) {
  const std::string folder = Folder("token");
  ASSERT_TRUE(MakeJobToken(folder).ok());
  Serve(Open(folder, Party::kCoordinator));
  ExpectStatus(Call(nullptr), absl::StatusCode::kUnauthenticated, "the call has no job token");
  const std::string other = Folder("other");
  ASSERT_TRUE(MakeJobToken(other).ok());
  ExpectStatus(Call(Open(other, Party::kOperator).get()), absl::StatusCode::kUnauthenticated,
               "the call's token is not this job's");
}

TEST_F(TaskSecurityTest, ATokenIsNotSentOverANetwork) {
  const std::shared_ptr<const TaskSecurity> token = Open(Folder("token"), Party::kCoordinator);
  for (const char* address : {"127.0.0.1:7070", "localhost:0", "[::1]:7070"}) {
    EXPECT_TRUE(token->CheckAddress("--listen", address).ok()) << address;
  }
  for (const char* address : {"0.0.0.0:7070", "[::]:0", "10.0.0.1:7070", "node1:7070", "127.0.0.2:1", ":7070"}) {
    ExpectStatus(token->CheckAddress("--listen", address), absl::StatusCode::kInvalidArgument,
                 absl::StrCat("--listen: ", address, " is not a loopback address"));
  }
  EXPECT_TRUE(Open(Certificates("job"), Party::kCoordinator)->CheckAddress("--listen", "0.0.0.0:7070").ok());
}

TEST_F(TaskSecurityTest, SaysWhatIsMissingAndWhatToDo) {
  const std::string folder = Certificates("job");
  ExpectStatus(TaskSecurity::Create({.credentials = folder, .party = Party::kEvaluator, .now = absl::Now()}),
               absl::StatusCode::kNotFound, "credentials of evaluator 0: cannot open");
  ExpectStatus(
      TaskSecurity::Create({.credentials = folder, .job = "other", .party = Party::kWorker, .now = absl::Now()}),
      absl::StatusCode::kPermissionDenied, "; rubato credentials makes them");
}

}  // namespace
}  // namespace rubato
