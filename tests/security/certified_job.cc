#include "tests/security/certified_job.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/security/credentials.h"
#include "common/storage/file.h"

namespace rubato {

CertifiedJob::CertifiedJob(const std::string& name, const std::string& job, absl::Time begin)
    : folder_(JoinPath(testing::TempDir(),
                       absl::StrCat(testing::UnitTest::GetInstance()->current_test_info()->name(), "-", name))) {
  std::vector<Identity> whose = {{job, Party::kCoordinator, 0}, {job, Party::kOperator, 0}};
  for (const uint32_t index : {0u, 1u, 2u}) {
    for (const Party party : {Party::kServer, Party::kWorker, Party::kEvaluator}) whose.push_back({job, party, index});
  }
  const absl::Status written = WriteCredentials(folder_, job, whose, {begin, absl::Hours(24)});
  EXPECT_TRUE(written.ok()) << written;
}

std::shared_ptr<const TaskSecurity> CertifiedJob::As(Party party, uint32_t index, absl::Time now) const {
  auto security = TaskSecurity::Create({.credentials = folder_, .party = party, .index = index, .now = now});
  EXPECT_TRUE(security.ok()) << security.status();
  return *std::move(security);
}

absl::Status CallMethod(int port, Party to, const TaskSecurity* security, const std::string& method) {
  grpc::GenericStub stub(OpenChannel(absl::StrCat("127.0.0.1:", port), to, 0, security, grpc::ChannelArguments()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(nullptr, 0), &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return FromGrpcStatus(status);
}

}  // namespace rubato
