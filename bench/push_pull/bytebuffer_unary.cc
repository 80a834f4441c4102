#include "bench/push_pull/bytebuffer_unary.h"

#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/push_pull/client_memory.h"
#include "bench/push_pull/grpc_endpoint.h"
#include "bench/push_pull/server_memory.h"
#include "common/clock.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

using Header = int64_t;  // The chunk.

// Which chunk a message is for; -1 when it is too short.
Header ReadHeader(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  Header chunk = -1;
  size_t copied = 0;
  if (message.Length() < sizeof(chunk) || !message.Dump(&slices).ok()) return -1;
  for (size_t i = 0; copied < sizeof(chunk); ++i) {
    const size_t bytes = std::min(slices[i].size(), sizeof(chunk) - copied);
    std::memcpy(reinterpret_cast<char*>(&chunk) + copied, slices[i].begin(), bytes);
    copied += bytes;
  }
  return chunk;
}

grpc::ByteBuffer Message(Header chunk, const grpc::Slice& payload) {
  const grpc::Slice slices[] = {grpc::Slice(&chunk, sizeof(chunk)), payload};
  return grpc::ByteBuffer(slices, 2);
}

// One call after another, each with another chunk.
struct ClientCall {
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer reply;
  grpc::Status status;
  int64_t chunk = 0;
};

class UnaryClient : public Client {
 public:
  UnaryClient(const Setup& setup, const std::shared_ptr<grpc::Channel>& channel)
      : setup_(setup), memory_(setup), stub_(channel), calls_(setup.in_flight) {
    for (int i = 0; i < setup_.in_flight; ++i) calls_[i].chunk = i;
  }
  ~UnaryClient() override { queue_.Shutdown(); }

  absl::StatusOr<Count> Run(absl::Duration duration) override {
    const absl::Time begin = clock_.Now();
    for (ClientCall& call : calls_) Begin(&call);
    int64_t round_trips = 0;
    for (int open = setup_.in_flight; open > 0;) {
      void* tag = nullptr;
      bool ok = false;
      if (!queue_.Next(&tag, &ok) || !ok) return absl::UnavailableError("the queue ended");
      ClientCall* call = static_cast<ClientCall*>(tag);
      if (!call->status.ok()) return absl::UnavailableError(call->status.error_message());
      const int64_t chunk = call->chunk;
      // A call has chunks of its own, so that no chunk is in flight twice.
      const int64_t next = chunk + setup_.in_flight;
      call->chunk = next < setup_.chunks() ? next : chunk % setup_.in_flight;
      grpc::ByteBuffer reply;
      reply.Swap(&call->reply);
      ++round_trips;
      if (setup_.in_flight == 1) RUBATO_RETURN_IF_ERROR(memory_.Store(chunk, reply));
      if (clock_.Now() - begin < duration) {
        Begin(call);
      } else {
        --open;
      }
      if (setup_.in_flight > 1) RUBATO_RETURN_IF_ERROR(memory_.Store(chunk, reply));
    }
    return Count{round_trips, clock_.Now() - begin};
  }

  absl::Status Verify() override { return memory_.Verify(); }

 private:
  void Begin(ClientCall* call) {
    call->reader = nullptr;
    call->context = std::make_unique<grpc::ClientContext>();
    call->reader = stub_.PrepareUnaryCall(call->context.get(), kMethod,
                                          Message(call->chunk, memory_.GradientSlice(call->chunk)), &queue_);
    call->reader->StartCall();
    call->reader->Finish(&call->reply, &call->status, call);
  }

  const Setup setup_;
  ClientMemory memory_;
  RealClock clock_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::vector<ClientCall> calls_;
};

// Takes one call after another.
class ServerCall {
 public:
  ServerCall(const Setup& setup, GrpcEndpoint* endpoint, ServerMemory* memory)
      : setup_(setup), endpoint_(endpoint), memory_(memory) {
    Accept();
  }

  absl::Status OnEvent() {
    switch (state_) {
      case State::kAccepting:
        state_ = State::kReading;
        call_->stream.Read(&message_, this);
        return absl::OkStatus();
      case State::kReading:
        return Answer();
      case State::kAnswering:
        Accept();
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

 private:
  enum class State { kAccepting, kReading, kAnswering };
  struct Call {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream{&context};
  };

  void Accept() {
    state_ = State::kAccepting;
    call_ = std::make_unique<Call>();
    endpoint_->service()->RequestCall(&call_->context, &call_->stream, endpoint_->queue(), endpoint_->queue(), this);
  }

  absl::Status Answer() {
    const Header chunk = ReadHeader(message_);
    if (chunk < 0 || chunk >= setup_.chunks()) {
      return absl::InvalidArgumentError(absl::StrCat("chunk: ", chunk, " is not in [0, ", setup_.chunks(), ")"));
    }
    RUBATO_RETURN_IF_ERROR(memory_->Add(chunk, message_, sizeof(chunk)));
    message_.Clear();
    state_ = State::kAnswering;
    const grpc::Slice weights = memory_->WeightsSlice(chunk);
    call_->stream.WriteAndFinish(grpc::ByteBuffer(&weights, 1), grpc::WriteOptions(), grpc::Status::OK, this);
    return absl::OkStatus();
  }

  const Setup setup_;
  GrpcEndpoint* const endpoint_;
  ServerMemory* const memory_;
  State state_ = State::kAccepting;
  std::unique_ptr<Call> call_;
  grpc::ByteBuffer message_;
};

}  // namespace

absl::Status ServeByteBufferUnary(const Setup& setup, const Ready& ready) {
  ServerMemory memory(setup);
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcEndpoint> endpoint, GrpcEndpoint::Create(setup, ready));
  std::vector<std::unique_ptr<ServerCall>> calls;
  // Twice as many as are in flight, so that one always waits for the next.
  for (int i = 0; i < 2 * setup.in_flight; ++i) {
    calls.push_back(std::make_unique<ServerCall>(setup, endpoint.get(), &memory));
  }
  void* tag = nullptr;
  bool ok = false;
  while (endpoint->queue()->Next(&tag, &ok)) {
    if (ok) RUBATO_RETURN_IF_ERROR(static_cast<ServerCall*>(tag)->OnEvent());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Client>> ConnectByteBufferUnary(const Setup& setup, const std::string& address) {
  RUBATO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, ConnectGrpc(setup, address));
  return std::make_unique<UnaryClient>(setup, channel);
}

}  // namespace rubato::bench
