#include "common/security/permissions.h"

#include "absl/strings/str_cat.h"

namespace rubato {
namespace {

constexpr Parties kTasks = {Party::kServer, Party::kWorker, Party::kEvaluator};
constexpr Parties kAll = {Party::kCoordinator, Party::kServer, Party::kWorker, Party::kEvaluator, Party::kOperator};

constexpr Permission kPermissions[] = {
    {"/rubato.v1.Coordinator/Session", kTasks},
    {"/rubato.v1.Coordinator/GetStatus", {Party::kOperator}},
    // A client's program may ask for what an operator may, of what it computes.
    {"/rubato.v1.Coordinator/SwitchMode", {Party::kOperator, Party::kWorker}},
    {"/rubato.v1.Coordinator/StopJob", {Party::kOperator}},
    {"/rubato.v1.Coordinator/TraceJob", {Party::kOperator}},
    {"/rubato.v1.Coordinator/WriteCheckpointNow", {Party::kOperator, Party::kWorker}},
    {"/rubato.v1.Coordinator/OfferModel", {Party::kWorker}},
    {"/rubato.v1.Coordinator/GetJobConfig", {Party::kServer}},
    {"/rubato.v1.Coordinator/PutValue", {Party::kWorker}},
    {"/rubato.v1.Coordinator/GetValue", {Party::kWorker}},
    {"/rubato.v1.Coordinator/Barrier", {Party::kWorker}},
    {"/rubato.v1.ParameterServer/Exchange", {Party::kWorker, Party::kEvaluator}},
    {"/rubato.v1.PartCopies/Read", {Party::kServer, Party::kWorker}},
    {"/rubato.v1.PartCopies/Write", {Party::kServer, Party::kWorker}},
    {"/grpc.health.v1.Health/Check", kAll, /*is_public=*/true},
    {"/grpc.health.v1.Health/Watch", kAll, /*is_public=*/true},
    // Only there if security.reflection is set.
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", {Party::kOperator}},
};

}  // namespace

absl::Span<const Permission> Permissions() { return kPermissions; }

const Permission* FindPermission(absl::string_view method) {
  for (const Permission& permission : kPermissions) {
    if (permission.method == method) return &permission;
  }
  return nullptr;
}

absl::Status CheckPermission(absl::string_view method, const Identity* who) {
  const Permission* permission = FindPermission(method);
  if (permission == nullptr) return absl::PermissionDeniedError(absl::StrCat("nobody may call ", method));
  if (who == nullptr || permission->parties.Has(who->party)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(PartyText(who->party, who->index), " may not call ", method));
}

}  // namespace rubato
