#include "common/health/testing/probe.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>

#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"

namespace rubato {
namespace {

constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

// A string field of a protobuf message, shorter than 128 bytes.
std::string StringField(int number, const std::string& value) {
  std::string bytes = {static_cast<char>(number << 3 | 2), static_cast<char>(value.size())};
  return bytes + value;
}

// Sends one message and returns the first that comes back.
absl::StatusOr<std::string> Call(const std::string& address, const std::string& method, const std::string& request) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  grpc::GenericStub stub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  grpc::CompletionQueue queue;
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
  };
  auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  wait();
  grpc::Slice slice(request);
  call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  wait();
  grpc::ByteBuffer reply;
  call->Read(&reply, nullptr);
  wait();
  grpc::Status status;
  call->Finish(&status, nullptr);
  wait();
  std::string bytes;
  std::vector<grpc::Slice> slices;
  if (reply.Valid() && reply.Dump(&slices).ok()) {
    for (const grpc::Slice& part : slices) bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
  }
  if (!status.ok()) return FromGrpcStatus(status);
  return bytes;
}

}  // namespace

absl::StatusOr<std::string> ProbeHealth(const std::string& address, const std::string& service) {
  absl::StatusOr<std::string> reply =
      Call(address, "/grpc.health.v1.Health/Check", service.empty() ? "" : StringField(1, service));
  if (!reply.ok()) return reply.status();
  // HealthCheckResponse { status = 1 }: SERVING is 1, NOT_SERVING 2.
  if (*reply == "\x08\x01") return "SERVING";
  if (*reply == "\x08\x02") return "NOT_SERVING";
  return absl::InternalError(absl::StrCat("a health answer of ", reply->size(), " bytes that is neither"));
}

absl::StatusOr<std::string> ProbeServices(const std::string& address) {
  return Call(address, kReflection, StringField(7, "*"));
}

absl::StatusOr<std::string> ProbeSymbol(const std::string& address, const std::string& symbol) {
  return Call(address, kReflection, StringField(4, symbol));
}

}  // namespace rubato
