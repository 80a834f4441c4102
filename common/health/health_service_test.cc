#include "common/health/health_service.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace rubato {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

class HealthServiceTest : public testing::Test {
 protected:
  // A client that watches, for a minute at the most.
  struct Watcher {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader;

    // What it is told next; UNKNOWN if the stream has ended.
    HealthCheckResponse::ServingStatus Next() {
      HealthCheckResponse response;
      return reader->Read(&response) ? response.status() : HealthCheckResponse::UNKNOWN;
    }
  };

  HealthServiceTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    stub_ = grpc::health::v1::Health::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  }
  ~HealthServiceTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  // The status, or the error's code.
  std::string Check(const std::string& name) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(name);
    HealthCheckResponse response;
    const grpc::Status status = stub_->Check(&context, request, &response);
    return status.ok() ? HealthCheckResponse::ServingStatus_Name(response.status())
                       : absl::StrCat("error ", status.error_code());
  }

  std::unique_ptr<Watcher> Watch(const std::string& name) {
    auto watcher = std::make_unique<Watcher>();
    watcher->context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    HealthCheckRequest request;
    request.set_service(name);
    watcher->reader = stub_->Watch(&watcher->context, request);
    return watcher;
  }

  Health health_;
  HealthService service_{&health_, "rubato.v1.Test"};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::health::v1::Health::Stub> stub_;
};

TEST_F(HealthServiceTest, SaysWhetherTheTaskServes) {
  EXPECT_EQ(Check(""), "NOT_SERVING");
  health_.SetServing(true);
  EXPECT_EQ(Check(""), "SERVING");
  EXPECT_EQ(Check("rubato.v1.Test"), "SERVING");
  EXPECT_EQ(Check("rubato.v1.None"), absl::StrCat("error ", grpc::StatusCode::NOT_FOUND));
  service_.Drain();
  EXPECT_EQ(Check(""), "NOT_SERVING");
}

TEST_F(HealthServiceTest, WatchersAreToldOfEachChange) {
  const auto watcher = Watch("");
  EXPECT_EQ(watcher->Next(), HealthCheckResponse::NOT_SERVING);
  health_.SetServing(true);
  EXPECT_EQ(watcher->Next(), HealthCheckResponse::SERVING);
  service_.Drain();
  EXPECT_EQ(watcher->Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(watcher->Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(watcher->reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(HealthServiceTest, AServiceThatIsNotThereIsUnknownToWatchers) {
  EXPECT_EQ(Watch("rubato.v1.None")->Next(), HealthCheckResponse::SERVICE_UNKNOWN);
}

TEST_F(HealthServiceTest, ManyWhoWatchLeaveThePortItsThreads) {
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < HealthService::kMaxWatchers; ++i) {
    watchers.push_back(Watch(""));
    EXPECT_EQ(watchers.back()->Next(), HealthCheckResponse::NOT_SERVING);
  }
  const auto refused = Watch("");
  EXPECT_EQ(refused->Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(refused->reader->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Check(""), "NOT_SERVING");
  // Their places are free once they have gone.
  for (const auto& watcher : watchers) watcher->context.TryCancel();
  for (const auto& watcher : watchers) EXPECT_FALSE(watcher->reader->Finish().ok());
  for (int i = 0; i < 600; ++i) {
    if (Watch("")->Next() == HealthCheckResponse::NOT_SERVING) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  FAIL() << "no place was free within a minute";
}

}  // namespace
}  // namespace rubato
