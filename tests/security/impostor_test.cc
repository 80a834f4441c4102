// Members of a job who speak in others' names, to a real coordinator and a real keeper of copies: refused by name, and
// the job goes on.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/part_copies/part_service.h"
#include "common/part_copies/part_store.h"
#include "common/session/session.h"
#include "common/storage/file.h"
#include "coordinator/coordinator_service.h"
#include "coordinator/testing/small_job.h"
#include "proto/coordinator.grpc.pb.h"
#include "proto/part_copies.grpc.pb.h"
#include "tests/security/certified_job.h"
#include "tests/security/hostile_peer.h"

namespace rubato {
namespace {

using coordinator::MakeTask;

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
}

class ImpostorTest : public testing::Test {
 protected:
  ImpostorTest() : job_("job") {
    coordinator::JobRunner::Options options;
    options.config = coordinator::SmallJob();
    options.config.set_run_directory(JoinPath(job_.folder(), "run"));
    options.config_fingerprint = coordinator::kConfigFingerprint;
    options.job_fingerprint = 77;
    options.clock = &clock_;
    options.log = &log_;
    auto runner = coordinator::JobRunner::Create(std::move(options));
    EXPECT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
    service_ = std::make_unique<coordinator::CoordinatorService>(runner_.get());
    security_ = job_.As(Party::kCoordinator);
    auto listener = coordinator::Listen("127.0.0.1:0", security_.get(), service_.get());
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }
  ~ImpostorTest() override { listener_.server->Shutdown(std::chrono::system_clock::now()); }

  std::unique_ptr<v1::Coordinator::Stub> StubOf(Party party, uint32_t index) {
    const std::shared_ptr<const TaskSecurity> security = job_.As(party, index);
    return v1::Coordinator::NewStub(OpenChannel(absl::StrCat("127.0.0.1:", listener_.port), Party::kCoordinator, 0,
                                                security.get(), grpc::ChannelArguments()));
  }
  // How a session ends in which the owner of this certificate registers as `task`; OK: it is registered.
  grpc::Status Register(Party party, uint32_t index, const v1::TaskId& task) {
    const std::shared_ptr<const TaskSecurity> security = job_.As(party, index);
    return HostilePeer(listener_.port, Party::kCoordinator, security.get()).Register(task);
  }
  v1::JobStatus Status() {
    const auto stub = StubOf(Party::kOperator, 0);
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::JobStatus reply;
    const grpc::Status status = stub->GetStatus(&context, {}, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }

  RealClock clock_;
  Logger log_{"coordinator", &clock_};
  const CertifiedJob job_;
  std::unique_ptr<coordinator::JobRunner> runner_;
  std::unique_ptr<coordinator::CoordinatorService> service_;
  std::shared_ptr<const TaskSecurity> security_;
  coordinator::Listener listener_;
};

TEST_F(ImpostorTest, NobodyRegistersAsAServerThatItIsNot) {
  ASSERT_TRUE(Register(Party::kServer, 0, MakeTask(v1::TaskId::SERVER, 0, 5)).ok());
  // With a new incarnation, which would be the end of server 0.
  const grpc::Status worker = Register(Party::kWorker, 1, MakeTask(v1::TaskId::SERVER, 0, 6));
  EXPECT_EQ(worker.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(worker.error_message(),
            "the message says that it is of server 0, and came with the certificate of worker 1");
  const grpc::Status server = Register(Party::kServer, 1, MakeTask(v1::TaskId::SERVER, 0, 6));
  EXPECT_EQ(server.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  const v1::JobStatus status = Status();
  int found = 0;
  for (const v1::TaskStatus& task : status.tasks()) {
    if (task.task().role() != v1::TaskId::SERVER || task.task().index() != 0) continue;
    EXPECT_EQ(task.task().incarnation(), 5u);
    ++found;
  }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(status.phase(), v1::JobStatus::STARTING);
}

TEST_F(ImpostorTest, ATaskThatIsRefusedGivesUpAtOnceAndSaysWhy) {
  Mutex mu;
  CondVar changed;
  absl::Status lost;
  Session::Options options;
  options.coordinator = absl::StrCat("127.0.0.1:", listener_.port);
  options.security = job_.As(Party::kWorker, 1);
  options.task = MakeTask(v1::TaskId::WORKER, 0, 5);
  options.registration = coordinator::RegistrationOf(options.task);
  options.heartbeat = [] { return v1::Heartbeat(); };
  options.on_directive = [](const v1::Directive&) {};
  options.on_lost = [&](const absl::Status& status) {
    MutexLock lock(mu);
    lost = status;
    changed.NotifyAll();
  };
  // It would come back for so long.
  options.give_up_after = absl::Hours(1);
  options.clock = &clock_;
  options.log = &log_;
  auto session = Session::Create(std::move(options));
  ASSERT_TRUE(session.ok()) << session.status();
  (*session)->Start();
  MutexLock lock(mu);
  while (lost.ok()) {
    if (!changed.WaitFor(mu, absl::Seconds(30))) break;
  }
  EXPECT_EQ(lost.code(), absl::StatusCode::kPermissionDenied) << lost;
  EXPECT_NE(lost.message().find("does not take this task for worker 0: the message says that it is of worker 0"),
            std::string::npos)
      << lost;
}

TEST_F(ImpostorTest, NobodyTalksInAnotherWorkersName) {
  const auto stub = StubOf(Party::kWorker, 1);
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::PutValueRequest put;
  *put.mutable_task() = MakeTask(v1::TaskId::WORKER, 0, 5);
  put.set_key("key");
  v1::PutValueReply reply;
  const grpc::Status status = stub->PutValue(&context, put, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(status.error_message(),
            "the message says that it is of worker 0, and came with the certificate of worker 1");
}

TEST_F(ImpostorTest, AWorkerMayNotStopTheJob) {
  const auto stub = StubOf(Party::kWorker, 1);
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::StopJobReply reply;
  EXPECT_EQ(stub->StopJob(&context, {}, &reply).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Status().phase(), v1::JobStatus::STARTING);
}

TEST_F(ImpostorTest, NobodyReplacesTheCopyOfAnothersPart) {
  PartStore store({.directory = job_.folder(), .task = MakeTask(v1::TaskId::SERVER, 1, 5), .clock = &clock_});
  store.SetJob(77);
  PartService service(&store);
  const std::shared_ptr<const TaskSecurity> keeper = job_.As(Party::kServer, 1);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", ServerCredentialsOf(keeper.get()), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const std::shared_ptr<const TaskSecurity> worker = job_.As(Party::kWorker, 1);
  const auto stub = v1::PartCopies::NewStub(
      OpenChannel(absl::StrCat("127.0.0.1:", port), Party::kServer, 1, worker.get(), grpc::ChannelArguments()));
  v1::WritePartRequest request;
  request.mutable_part()->set_job_fingerprint(77);
  request.mutable_part()->set_checkpoint("step5");
  request.mutable_part()->set_role(v1::TaskId::SERVER);
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::WritePartReply reply;
  const grpc::Status status = stub->Write(&context, request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(status.error_message(),
            "the message says that it is of server 0, and came with the certificate of worker 1");
  server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace
}  // namespace rubato
