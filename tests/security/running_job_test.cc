// Ten thousand calls to a job that trains, of every method by everybody: each is refused, or let through, as the table
// says, and the job loses no step.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/security/permissions.h"
#include "tests/security/certified_job.h"
#include "tests/security/certified_run.h"

namespace rubato {
namespace {

using ::testing::AnyOf;

constexpr int kCalls = 10000;
constexpr size_t kAtOnce = 64;
constexpr Party kParties[] = {Party::kCoordinator, Party::kServer, Party::kWorker, Party::kEvaluator, Party::kOperator};

// What an operator may ask for, and a worker in a client's name, changes a job; that it may is the table's matter.
bool ChangesTheJob(absl::string_view method) {
  for (const char* end : {"/StopJob", "/SwitchMode", "/WriteCheckpointNow", "/TraceJob"}) {
    if (absl::EndsWith(method, end)) return true;
  }
  return false;
}

// Goes on until its caller has enough, as its messages do not say.
bool HasNoEnd(absl::string_view method) { return absl::EndsWith(method, "/Watch"); }

// Somebody's way to a task.
struct Caller {
  std::string who;
  Party party;
  std::unique_ptr<grpc::GenericStub> stub;
};

struct Call {
  const Caller* caller = nullptr;
  const Permission* permission = nullptr;
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer reply;
  grpc::Status status;
};

class RunningJobTest : public testing::Test {
 protected:
  RunningJobTest() {
    run_.AwaitSteps(2);
    for (const Party party : kParties) {
      // Index 2 is of nobody who takes part.
      const uint32_t index = party == Party::kCoordinator || party == Party::kOperator ? 0 : 2;
      const std::shared_ptr<const TaskSecurity> security = job_.As(party, index);
      AddCaller(party, index, run_.coordinator_port(), Party::kCoordinator, security.get());
      AddCaller(party, index, run_.server_port(), Party::kServer, security.get());
    }
  }

  void AddCaller(Party party, uint32_t index, int port, Party to, const TaskSecurity* security) {
    callers_.push_back({absl::StrCat(PartyText(party, index), " at the ", PartyText(to, 0)), party,
                        std::make_unique<grpc::GenericStub>(
                            OpenChannel(absl::StrCat("127.0.0.1:", port), to, 0, security, grpc::ChannelArguments()))});
  }
  void Start(const Caller& caller, const Permission& permission) {
    auto call = std::make_unique<Call>();
    call->caller = &caller;
    call->permission = &permission;
    call->context.set_deadline(std::chrono::system_clock::now() +
                               std::chrono::seconds(HasNoEnd(permission.method) ? 1 : 60));
    call->reader = caller.stub->PrepareUnaryCall(&call->context, std::string(permission.method),
                                                 grpc::ByteBuffer(nullptr, 0), &queue_);
    call->reader->StartCall();
    call->reader->Finish(&call->reply, &call->status, call.get());
    call.release();
    ++waiting_;
  }
  void End() {
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue_.Next(&tag, &ok));
    --waiting_;
    const std::unique_ptr<Call> call(static_cast<Call*>(tag));
    const bool may = call->permission->is_public || call->permission->parties.Has(call->caller->party);
    const bool refused = call->status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
    // What is let through may be refused by its handler: an empty message is of nobody.
    const bool by_table = absl::StrContains(call->status.error_message(), " may not call ") ||
                          absl::StrContains(call->status.error_message(), "nobody may call ");
    EXPECT_EQ(refused && by_table, !may) << call->caller->who << " calls " << call->permission->method << ": "
                                         << call->status.error_code() << " " << call->status.error_message();
    if (HasNoEnd(call->permission->method)) {
      // It went on, others were before it, or the port has no such service.
      EXPECT_THAT(call->status.error_code(),
                  AnyOf(grpc::StatusCode::DEADLINE_EXCEEDED, grpc::StatusCode::RESOURCE_EXHAUSTED,
                        grpc::StatusCode::UNIMPLEMENTED))
          << call->caller->who << " calls " << call->permission->method;
    } else {
      EXPECT_NE(call->status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED)
          << call->caller->who << " calls " << call->permission->method;
    }
    ++(may ? allowed_ : refused_);
  }

  const CertifiedJob job_{"job", "hunted"};
  CertifiedRun run_{&job_};
  std::vector<Caller> callers_;
  grpc::CompletionQueue queue_;
  size_t waiting_ = 0;
  int allowed_ = 0;
  int refused_ = 0;
};

TEST_F(RunningJobTest, LosesNoStepDuringTenThousandCalls) {
  const v1::JobStatus begun = run_.Status();
  for (int started = 0; started < kCalls;) {
    for (const Caller& caller : callers_) {
      for (const Permission& permission : Permissions()) {
        const bool may = permission.is_public || permission.parties.Has(caller.party);
        if (may && ChangesTheJob(permission.method)) continue;
        Start(caller, permission);
        ++started;
        while (waiting_ >= kAtOnce) End();
      }
    }
  }
  while (waiting_ > 0) End();
  const int64_t step = run_.AwaitSteps(10);
  run_.ExpectUnharmed(begun);
  run_.StopAndAudit();
  std::cout << refused_ << " calls refused and " << allowed_ << " let through, while the job trained steps "
            << begun.step() << " to " << step << "\n";
  EXPECT_GE(refused_ + allowed_, kCalls);
  EXPECT_GT(refused_, kCalls / 2);
  EXPECT_GT(allowed_, kCalls / 10);
  EXPECT_GT(step, begun.step());
}

}  // namespace
}  // namespace rubato
