#include "common/security/call_check.h"

#include <grpc/grpc_security_constants.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/grpc_status.h"
#include "common/security/permissions.h"

namespace rubato {
namespace {

class CallCheck final : public grpc::AuthMetadataProcessor {
 public:
  explicit CallCheck(Authenticate authenticate) : authenticate_(std::move(authenticate)) {}

  // gRPC would keep threads for it.
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata* consumed,
                       OutputMetadata*) override {
    const auto path = metadata.find(":path");
    const absl::string_view method =
        path == metadata.end() ? "" : absl::string_view(path->second.data(), path->second.size());
    const Permission* permission = FindPermission(method);
    if (permission != nullptr && permission->is_public) return grpc::Status::OK;
    const absl::StatusOr<std::optional<Identity>> who = authenticate_(*context, metadata);
    if (!who.ok()) return ToGrpcStatus(who.status());
    // Handlers have no use for it.
    for (auto [begin, end] = metadata.equal_range("authorization"); begin != end; ++begin) {
      consumed->emplace("authorization", std::string(begin->second.data(), begin->second.size()));
    }
    return ToGrpcStatus(CheckPermission(method, who->has_value() ? &**who : nullptr));
  }

 private:
  const Authenticate authenticate_;
};

}  // namespace

std::shared_ptr<grpc::AuthMetadataProcessor> MakeCallCheck(Authenticate authenticate) {
  return std::make_shared<CallCheck>(std::move(authenticate));
}

std::optional<Identity> PeerIdentity(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> uris = context.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME);
  if (!context.IsPeerAuthenticated() || uris.size() != 1) return std::nullopt;
  absl::StatusOr<Identity> identity = ParseIdentityUri(absl::string_view(uris[0].data(), uris[0].size()));
  if (!identity.ok()) return std::nullopt;
  return *std::move(identity);
}

}  // namespace rubato
