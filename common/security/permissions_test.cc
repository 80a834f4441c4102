#include "common/security/permissions.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/security/testing/expect_status.h"
#include "common/storage/file.h"
#include "proto/coordinator.pb.h"
#include "proto/health.pb.h"
#include "proto/parameter_server.pb.h"
#include "proto/part_copies.pb.h"

namespace rubato {
namespace {

// Of every service of these files.
std::set<std::string> MethodsOf(const google::protobuf::FileDescriptor& file) {
  std::set<std::string> methods;
  for (int i = 0; i < file.service_count(); ++i) {
    const google::protobuf::ServiceDescriptor& service = *file.service(i);
    for (int j = 0; j < service.method_count(); ++j) {
      methods.insert(absl::StrCat("/", service.full_name(), "/", service.method(j)->name()));
    }
  }
  return methods;
}

std::set<std::string> MethodsOfProto() {
  std::set<std::string> methods;
  for (const google::protobuf::FileDescriptor* file :
       {v1::TaskMessage::descriptor()->file(), v1::ExchangeRequest::descriptor()->file(),
        v1::PartName::descriptor()->file(), grpc::health::v1::HealthCheckRequest::descriptor()->file()}) {
    methods.merge(MethodsOf(*file));
  }
  return methods;
}

TEST(PermissionsTest, EveryMethodHasOneRow) {
  const std::set<std::string> methods = MethodsOfProto();
  EXPECT_GE(methods.size(), 14u);
  for (const std::string& method : methods) EXPECT_NE(FindPermission(method), nullptr) << method << " has no row";
  std::set<absl::string_view> rows;
  for (const Permission& permission : Permissions()) {
    EXPECT_TRUE(rows.insert(permission.method).second) << permission.method << " has two rows";
    const bool is_grpcs = absl::StartsWith(permission.method, "/grpc.reflection.");
    EXPECT_NE(is_grpcs, methods.count(std::string(permission.method)) > 0) << permission.method << " is no method";
  }
}

// A file with a service that the test above does not know.
TEST(PermissionsTest, NoOtherFileHasServices) {
  const std::set<std::string> known = {"coordinator.proto", "health.proto", "parameter_server.proto",
                                       "part_copies.proto"};
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("proto")) {
    const std::string name = entry.path().filename();
    if (!absl::EndsWith(name, ".proto")) continue;
    ++files;
    const bool has_service = absl::StrContains(*ReadFile(entry.path()), "\nservice ");
    EXPECT_EQ(has_service, known.count(name) > 0) << name;
  }
  EXPECT_GE(files, 10);
}

TEST(PermissionsTest, NothingOfOursIsPublic) {
  for (const Permission& permission : Permissions()) {
    EXPECT_FALSE(permission.is_public && absl::StartsWith(permission.method, "/rubato.")) << permission.method;
  }
}

TEST(PermissionsTest, RefusalsNameTheCallerAndTheMethodAlone) {
  const Identity worker = {"mnist", Party::kWorker, 3};
  const absl::Status refused = CheckPermission("/rubato.v1.Coordinator/StopJob", &worker);
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(refused.message(), "worker 3 may not call /rubato.v1.Coordinator/StopJob");
  ExpectStatus(CheckPermission("/rubato.v1.Coordinator/None", &worker), absl::StatusCode::kPermissionDenied,
               "nobody may call /rubato.v1.Coordinator/None");
  EXPECT_TRUE(CheckPermission("/rubato.v1.ParameterServer/Exchange", &worker).ok());
  EXPECT_TRUE(CheckPermission("/rubato.v1.Coordinator/StopJob", nullptr).ok());
  EXPECT_FALSE(CheckPermission("/rubato.v1.Coordinator/None", nullptr).ok());
}

}  // namespace
}  // namespace rubato
