#include "common/part_copies/part_service.h"

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "common/grpc_status.h"
#include "common/limits/peer_name.h"
#include "common/security/call_check.h"
#include "common/security/sender.h"

namespace rubato {
namespace {

template <typename Reply>
grpc::Status Answer(absl::StatusOr<Reply> result, Reply* reply) {
  if (result.ok()) *reply = *std::move(result);
  return ToGrpcStatus(result.status());
}

}  // namespace

grpc::Status PartService::Read(grpc::ServerContext*, const v1::ReadPartRequest* request, v1::ReadPartReply* reply) {
  return Answer(store_->Read(*request), reply);
}

grpc::Status PartService::Write(grpc::ServerContext* context, const v1::WritePartRequest* request,
                                v1::WritePartReply* reply) {
  const v1::PartName& part = request->part();
  const std::optional<Identity> identity = PeerIdentity(*context->auth_context());
  const absl::Status sender = CheckSender(identity, part.role(), part.index());
  if (!sender.ok()) {
    if (refusals_ != nullptr) refusals_->Note(PeerName(identity, context->peer()), "parts", sender.message());
    return ToGrpcStatus(sender);
  }
  return Answer(store_->Write(*request), reply);
}

}  // namespace rubato
