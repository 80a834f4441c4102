#include "tests/security/hostile_peer.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/http/testing/http_client.h"
#include "coordinator/testing/small_job.h"

namespace rubato {
namespace {

constexpr auto kTimeout = std::chrono::seconds(60);
// Streams that are asked for at a time.
constexpr size_t kAtOnce = 500;

void SetDeadline(grpc::ClientContext* context) { context->set_deadline(std::chrono::system_clock::now() + kTimeout); }

std::string TextOf(const grpc::Status& status) {
  return absl::StrCat(status.error_code(), ": ", status.error_message());
}

// As many bytes, of which the memory is there once.
grpc::ByteBuffer Repeated(size_t mib) {
  const grpc::Slice slice(std::string(size_t{1} << 20, 'x'));
  const std::vector<grpc::Slice> slices(mib, slice);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// A stream whose end is awaited.
struct Call {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
  grpc::Status status;
};

// Waits for the next event that is the end of a call. Null: none comes.
Call* NextEnd(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  const auto deadline = std::chrono::system_clock::now() + kTimeout;
  while (queue->AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT) {
    if (tag == nullptr) continue;
    return static_cast<Call*>(tag);
  }
  return nullptr;
}

// As a queue is to be before it is destroyed.
void Drain(grpc::CompletionQueue* queue) {
  queue->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
  }
}

}  // namespace

HostilePeer::HostilePeer(int port, Party to, const TaskSecurity* security)
    : channel_(OpenChannel(absl::StrCat("127.0.0.1:", port), to, 0, security, grpc::ChannelArguments())) {}

grpc::Status HostilePeer::Register(const v1::TaskId& task) {
  const auto stub = v1::Coordinator::NewStub(channel_);
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto stream = stub->Session(&context);
  v1::TaskMessage message;
  *message.mutable_task() = task;
  *message.mutable_register_() = coordinator::RegistrationOf(task);
  stream->Write(message);
  v1::Directive directive;
  if (!stream->Read(&directive)) return stream->Finish();
  context.TryCancel();
  stream->Finish();
  return directive.has_registered() ? grpc::Status::OK
                                    : grpc::Status(grpc::StatusCode::UNKNOWN, directive.DebugString());
}

std::map<std::string, int> HostilePeer::Ask(const std::function<v1::ExchangeRequest(uint64_t id)>& request, int count) {
  const auto stub = v1::ParameterServer::NewStub(channel_);
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto stream = stub->Exchange(&context);
  std::map<std::string, int> answers;
  v1::ExchangeReply reply;
  for (int i = 1; i <= count; ++i) {
    if (!stream->Write(request(static_cast<uint64_t>(i))) || !stream->Read(&reply)) break;
    ++answers[absl::StrCat(v1::ExchangeReply::Outcome_Name(reply.outcome()), ": ", reply.message())];
  }
  stream->WritesDone();
  const grpc::Status status = stream->Finish();
  if (!status.ok()) ++answers[TextOf(status)];
  return answers;
}

grpc::Status HostilePeer::AskWithoutReading(const std::function<v1::ExchangeRequest(uint64_t id)>& request,
                                            uint64_t at_once) {
  const auto stub = v1::ParameterServer::NewStub(channel_);
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto stream = stub->Exchange(&context);
  RealClock clock;
  for (uint64_t id = 1; stream->Write(request(id)); ++id) {
    if (id > at_once) clock.Sleep(absl::Milliseconds(10));
  }
  v1::ExchangeReply reply;
  while (stream->Read(&reply)) {
  }
  return stream->Finish();
}

grpc::Status HostilePeer::SendLarge(const std::string& method, size_t mib) {
  grpc::GenericStub stub(channel_);
  grpc::CompletionQueue queue;
  Call call;
  SetDeadline(&call.context);
  call.stream = stub.PrepareCall(&call.context, method, &queue);
  call.stream->StartCall(nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  const grpc::ByteBuffer message = Repeated(mib);
  call.stream->Write(message, nullptr);
  call.stream->Finish(&call.status, &call);
  EXPECT_NE(NextEnd(&queue), nullptr);
  Drain(&queue);
  return call.status;
}

HostilePeer::Streams HostilePeer::OpenStreams(const std::string& method, int count, size_t may_stay) {
  grpc::GenericStub stub(channel_);
  grpc::CompletionQueue queue;
  std::map<Call*, std::unique_ptr<Call>> open;
  Streams streams;
  const auto start = [&] {
    auto call = std::make_unique<Call>();
    SetDeadline(&call->context);
    call->stream = stub.PrepareCall(&call->context, method, &queue);
    call->stream->StartCall(nullptr);
    call->stream->Finish(&call->status, call.get());
    open[call.get()] = std::move(call);
  };
  for (int started = 0; started < count || open.size() > may_stay;) {
    for (; started < count && open.size() < kAtOnce; ++started) start();
    Call* const ended = NextEnd(&queue);
    if (ended == nullptr) break;
    ++streams.refused[TextOf(ended->status)];
    open.erase(ended);
  }
  streams.open = open.size();
  for (const auto& [key, call] : open) call->context.TryCancel();
  Drain(&queue);
  return streams;
}

std::vector<FileDescriptor> ConnectSilently(int port, int count) {
  std::vector<FileDescriptor> connections;
  for (int i = 0; i < count; ++i) connections.push_back(ConnectTo(port));
  return connections;
}

int CountEnded(const std::vector<FileDescriptor>& connections) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int ended = 0;
  for (const FileDescriptor& connection : connections) {
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd wait = {connection.get(), POLLIN, 0};
      if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) != 1) return ended;
      char bytes[512];
      // What a server says first is not the end.
      if (recv(connection.get(), bytes, sizeof(bytes), 0) <= 0) break;
    }
    ++ended;
  }
  return ended;
}

void RaiseDescriptorLimit() {
  rlimit limit = {};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

}  // namespace rubato
