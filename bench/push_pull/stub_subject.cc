#include "bench/push_pull/stub_subject.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/server_builder.h>

#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "bench/push_pull/client_memory.h"
#include "bench/push_pull/server_memory.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/status.h"
#include "proto/parameter_server.grpc.pb.h"

namespace rubato::bench {
namespace {

class AddingService : public v1::ParameterServer::Service {
 public:
  explicit AddingService(const Setup& setup) : setup_(setup), memory_(setup) {}

  grpc::Status Exchange(grpc::ServerContext*,
                        grpc::ServerReaderWriter<v1::ExchangeReply, v1::ExchangeRequest>* stream) override {
    v1::ExchangeRequest request;
    while (stream->Read(&request)) {
      const uint32_t chunk =
          request.push_pull().chunks_size() == 1 ? request.push_pull().chunks(0).chunk() : UINT32_MAX;
      if (chunk >= setup_.chunks() || request.payload().size() != static_cast<size_t>(setup_.size)) {
        return {grpc::StatusCode::INVALID_ARGUMENT,
                absl::StrCat("chunk ", chunk, " of ", request.payload().size(), " bytes; there are ", setup_.chunks(),
                             " of ", setup_.size)};
      }
      float* weights = memory_.Weights(chunk);
      AddFloats(request.payload().data(), setup_.floats(), weights);
      v1::ExchangeReply reply;
      reply.set_request_id(request.request_id());
      reply.set_outcome(v1::ExchangeReply::OK);
      reply.set_push(v1::ExchangeReply::PUSH_APPLIED);
      reply.add_chunks()->set_chunk(chunk);
      reply.set_payload(weights, setup_.size);
      if (!stream->Write(reply)) break;
    }
    return grpc::Status::OK;
  }

 private:
  const Setup setup_;
  ServerMemory memory_;
};

class StubClient : public Client {
 public:
  StubClient(const Setup& setup, const std::shared_ptr<grpc::Channel>& channel)
      : setup_(setup),
        memory_(setup),
        stub_(v1::ParameterServer::NewStub(channel)),
        stream_(stub_->Exchange(&context_)) {}
  ~StubClient() override { context_.TryCancel(); }

  absl::StatusOr<Count> Run(absl::Duration duration) override {
    const absl::Time begin = clock_.Now();
    const int64_t before = received_;
    absl::Status status = setup_.in_flight == 1 ? RunOneByOne(begin + duration) : RunPipelined(begin + duration);
    RUBATO_RETURN_IF_ERROR(status);
    return Count{received_ - before, clock_.Now() - begin};
  }

  absl::Status Verify() override { return memory_.Verify(); }

 private:
  absl::Status RunOneByOne(absl::Time end) {
    while (clock_.Now() < end) {
      RUBATO_RETURN_IF_ERROR(Write());
      RUBATO_RETURN_IF_ERROR(Read());
    }
    return absl::OkStatus();
  }

  absl::Status RunPipelined(absl::Time end) {
    absl::Status read_status;
    {
      MutexLock lock(mu_);
      open_ = 0;
      writer_ended_ = false;
    }
    std::thread reader([&] { read_status = ReadUntilWriterEnds(); });
    absl::Status write_status;
    while (write_status.ok() && clock_.Now() < end) {
      TakeSlot();
      write_status = Write();
    }
    if (!write_status.ok()) context_.TryCancel();
    {
      MutexLock lock(mu_);
      writer_ended_ = true;
      changed_.NotifyAll();
    }
    reader.join();
    return read_status.ok() ? write_status : read_status;
  }

  // The reader frees slots, also when the stream is broken.
  void TakeSlot() {
    MutexLock lock(mu_);
    while (open_ >= setup_.in_flight) changed_.Wait(mu_);
    ++open_;
    changed_.NotifyAll();
  }

  absl::Status ReadUntilWriterEnds() {
    absl::Status status;
    for (;;) {
      {
        MutexLock lock(mu_);
        while (open_ == 0 && !writer_ended_) changed_.Wait(mu_);
        if (open_ == 0) return status;
      }
      if (status.ok()) status = Read();
      MutexLock lock(mu_);
      --open_;
      changed_.NotifyAll();
    }
  }

  absl::Status Write() {
    const int64_t chunk = sent_++ % setup_.chunks();
    v1::ExchangeRequest request;
    request.set_request_id(sent_);
    v1::ChunkUpdate* update = request.mutable_push_pull()->add_chunks();
    update->set_chunk(chunk);
    update->set_length(setup_.floats());
    request.set_payload(memory_.Gradient(chunk), setup_.size);
    return stream_->Write(request) ? absl::OkStatus() : absl::UnavailableError("the stream broke");
  }

  absl::Status Read() {
    if (!stream_->Read(&reply_)) return absl::UnavailableError(stream_->Finish().error_message());
    const int64_t chunk = received_++ % setup_.chunks();
    if (reply_.payload().size() != static_cast<size_t>(setup_.size)) {
      return absl::InvalidArgumentError(absl::StrCat("payload: ", reply_.payload().size(), " bytes"));
    }
    std::memcpy(memory_.Weights(chunk), reply_.payload().data(), setup_.size);
    memory_.CountTrip(chunk);
    return absl::OkStatus();
  }

  const Setup setup_;
  ClientMemory memory_;
  RealClock clock_;
  grpc::ClientContext context_;
  const std::unique_ptr<v1::ParameterServer::Stub> stub_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::ExchangeRequest, v1::ExchangeReply>> stream_;
  v1::ExchangeReply reply_;
  int64_t sent_ = 0;      // The writer's.
  int64_t received_ = 0;  // The reader's.

  Mutex mu_;
  CondVar changed_;
  int open_ ABSL_GUARDED_BY(mu_) = 0;  // Messages in flight.
  bool writer_ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

absl::Status ServeStub(const Setup& setup, const Ready& ready) {
  AddingService service(setup);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::UnavailableError("cannot listen on loopback");
  ready(absl::StrCat("127.0.0.1:", port));
  server->Wait();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Client>> ConnectStub(const Setup& setup, const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return std::make_unique<StubClient>(
      setup, grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

}  // namespace rubato::bench
