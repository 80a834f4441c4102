#include "bench/push_pull/bytebuffer_stream.h"

#include <grpcpp/generic/generic_stub.h>

#include "absl/strings/str_cat.h"
#include "bench/push_pull/client_memory.h"
#include "bench/push_pull/grpc_endpoint.h"
#include "bench/push_pull/server_memory.h"
#include "common/clock.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

enum Operation : intptr_t { kStart = 1, kRead, kWrite };

void* Tag(Operation operation) { return reinterpret_cast<void*>(operation); }
Operation FromTag(void* tag) { return static_cast<Operation>(reinterpret_cast<intptr_t>(tag)); }

grpc::ByteBuffer Message(const grpc::Slice& payload) { return grpc::ByteBuffer(&payload, 1); }

class StreamClient : public Client {
 public:
  StreamClient(const Setup& setup, const std::shared_ptr<grpc::Channel>& channel)
      : setup_(setup), memory_(setup), stub_(channel) {}

  ~StreamClient() override {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  absl::Status Start() {
    stream_ = stub_.PrepareCall(&context_, kMethod, &queue_);
    stream_->StartCall(Tag(kStart));
    RUBATO_RETURN_IF_ERROR(Next().status());
    stream_->Read(&incoming_, Tag(kRead));
    return absl::OkStatus();
  }

  absl::StatusOr<Count> Run(absl::Duration duration) override {
    const absl::Time begin = clock_.Now();
    const int64_t before = received_;
    end_ = begin + duration;
    for (;;) {
      WriteNext();
      if (received_ == sent_ && !writing_) break;
      RUBATO_ASSIGN_OR_RETURN(const Operation operation, Next());
      if (operation == kWrite) writing_ = false;
      if (operation == kRead) RUBATO_RETURN_IF_ERROR(OnRead());
    }
    return Count{received_ - before, clock_.Now() - begin};
  }

  absl::Status Verify() override { return memory_.Verify(); }

 private:
  absl::StatusOr<Operation> Next() {
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok) || !ok) return absl::UnavailableError("the stream broke");
    return FromTag(tag);
  }

  // Starts a write if one is due.
  void WriteNext() {
    if (writing_ || sent_ - received_ >= setup_.in_flight || clock_.Now() >= end_) return;
    stream_->Write(Message(memory_.GradientSlice(sent_++ % setup_.chunks())), Tag(kWrite));
    writing_ = true;
  }

  absl::Status OnRead() {
    grpc::ByteBuffer message;
    message.Swap(&incoming_);
    const int64_t chunk = received_++ % setup_.chunks();
    // With others in flight, ahead of the copy, so that the server does not wait for it.
    if (setup_.in_flight > 1) WriteNext();
    RUBATO_RETURN_IF_ERROR(memory_.Store(chunk, message));
    stream_->Read(&incoming_, Tag(kRead));
    return absl::OkStatus();
  }

  const Setup setup_;
  ClientMemory memory_;
  RealClock clock_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer incoming_;
  absl::Time end_;
  bool writing_ = false;
  int64_t sent_ = 0;
  int64_t received_ = 0;
};

}  // namespace

absl::Status ServeByteBufferStream(const Setup& setup, const Ready& ready) {
  ServerMemory memory(setup);
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcEndpoint> endpoint, GrpcEndpoint::Create(setup, ready));
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream(&context);
  endpoint->service()->RequestCall(&context, &stream, endpoint->queue(), endpoint->queue(), Tag(kStart));
  grpc::ByteBuffer incoming;
  // Messages taken, and answers begun.
  int64_t received = 0;
  int64_t sent = 0;
  bool writing = false;
  void* tag = nullptr;
  bool ok = false;
  while (endpoint->queue()->Next(&tag, &ok) && ok) {
    if (FromTag(tag) == kWrite) writing = false;
    if (FromTag(tag) == kRead) {
      RUBATO_RETURN_IF_ERROR(memory.Add(received++ % setup.chunks(), incoming));
      incoming.Clear();
    }
    if (!writing && sent < received) {
      stream.Write(Message(memory.WeightsSlice(sent++ % setup.chunks())), Tag(kWrite));
      writing = true;
    }
    if (FromTag(tag) != kWrite) stream.Read(&incoming, Tag(kRead));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Client>> ConnectByteBufferStream(const Setup& setup, const std::string& address) {
  RUBATO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, ConnectGrpc(setup, address));
  auto client = std::make_unique<StreamClient>(setup, channel);
  RUBATO_RETURN_IF_ERROR(client->Start());
  return client;
}

}  // namespace rubato::bench
