#include "bench/sparse/map_stream.h"

#include <grpcpp/generic/generic_stub.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/push_pull/grpc_endpoint.h"
#include "bench/sparse/map_rows.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

enum Operation : intptr_t { kStart = 1, kRead, kWrite };

void* Tag(Operation operation) { return reinterpret_cast<void*>(operation); }

constexpr size_t kHeaderBytes = 2 * sizeof(uint64_t);

// The message's bytes, as they lie in `to`. False: there are not as many.
bool CopyTo(const grpc::ByteBuffer& message, size_t bytes, void* to) {
  std::vector<grpc::Slice> slices;
  if (message.Length() != bytes || !message.Dump(&slices).ok()) return false;
  char* at = static_cast<char*>(to);
  for (const grpc::Slice& slice : slices) {
    std::memcpy(at, slice.begin(), slice.size());
    at += slice.size();
  }
  return true;
}

class StreamServer {
 public:
  StreamServer(int dimension, bool prefetches) : dimension_(dimension), rows_(dimension, prefetches) {}

  absl::StatusOr<grpc::ByteBuffer> Answer(const grpc::ByteBuffer& message) {
    request_.resize((message.Length() + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    if (message.Length() < kHeaderBytes || !CopyTo(message, message.Length(), request_.data())) {
      return absl::InvalidArgumentError("a request without its header");
    }
    const uint64_t pushed = request_[0], asked = request_[1];
    const uint64_t row_bytes = sizeof(float) * dimension_;
    const uint64_t most = message.Length() / sizeof(uint64_t);
    if (pushed > most || asked > most ||
        message.Length() != kHeaderBytes + pushed * (sizeof(uint64_t) + row_bytes) + asked * sizeof(uint64_t)) {
      return absl::InvalidArgumentError(
          absl::StrCat(message.Length(), " bytes; ", pushed, " and ", asked, " keys take another size"));
    }
    const uint64_t* const keys = request_.data() + 2;
    const auto* const gradients = reinterpret_cast<const float*>(keys + pushed);
    rows_.Update(keys, static_cast<int64_t>(pushed), gradients);
    asked_.resize(asked);
    if (asked > 0) std::memcpy(asked_.data(), gradients + pushed * dimension_, asked * sizeof(uint64_t));
    grpc::Slice answer(asked * row_bytes);
    rows_.Lookup(asked_.data(), static_cast<int64_t>(asked),
                 reinterpret_cast<float*>(const_cast<uint8_t*>(answer.begin())));
    return grpc::ByteBuffer(&answer, 1);
  }

 private:
  const int dimension_;
  MapRows rows_;
  // Aligned, as they lie in no message.
  std::vector<uint64_t> request_, asked_;
};

class StreamClient : public RowClient {
 public:
  StreamClient(int dimension, const std::shared_ptr<grpc::Channel>& channel) : dimension_(dimension), stub_(channel) {}

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
    return Next();
  }

  absl::Status Exchange(const std::vector<uint64_t>& pushed, const std::vector<float>& gradients,
                        const std::vector<uint64_t>& asked) override {
    const uint64_t header[] = {pushed.size(), asked.size()};
    std::vector<grpc::Slice> slices = {grpc::Slice(header, sizeof(header))};
    const auto add = [&](const void* data, size_t bytes) {
      if (bytes > 0) slices.emplace_back(data, bytes, grpc::Slice::STATIC_SLICE);
    };
    add(pushed.data(), pushed.size() * sizeof(uint64_t));
    add(gradients.data(), pushed.size() * dimension_ * sizeof(float));
    add(asked.data(), asked.size() * sizeof(uint64_t));
    const grpc::ByteBuffer request(slices.data(), slices.size());
    stream_->Read(&answer_, Tag(kRead));
    stream_->Write(request, Tag(kWrite));
    RUBATO_RETURN_IF_ERROR(Next());
    RUBATO_RETURN_IF_ERROR(Next());
    rows_.resize(asked.size() * dimension_);
    if (!CopyTo(answer_, rows_.size() * sizeof(float), rows_.data())) {
      return absl::InternalError(absl::StrCat("an answer of ", answer_.Length(), " bytes to ", asked.size(), " keys"));
    }
    bytes_ += static_cast<int64_t>(request.Length() + answer_.Length());
    return absl::OkStatus();
  }

  const float* rows() override { return rows_.data(); }
  int64_t payload_bytes() override { return bytes_; }

 private:
  // Waits for the end of an operation.
  absl::Status Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok ? absl::OkStatus() : absl::UnavailableError("the stream broke");
  }

  const int dimension_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer answer_;
  std::vector<float> rows_;
  int64_t bytes_ = 0;
};

}  // namespace

absl::Status ServeMapStream(const SparseSetup& setup, bool prefetches,
                            const std::function<void(const std::string& address)>& ready) {
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcEndpoint> endpoint, GrpcEndpoint::Create({}, ready));
  StreamServer server(setup.dimension, prefetches);
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream(&context);
  endpoint->service()->RequestCall(&context, &stream, endpoint->queue(), endpoint->queue(), Tag(kStart));
  grpc::ByteBuffer incoming;
  void* tag = nullptr;
  bool ok = false;
  // The next request comes after the answer.
  while (endpoint->queue()->Next(&tag, &ok) && ok) {
    if (tag == Tag(kStart)) stream.Read(&incoming, Tag(kRead));
    if (tag != Tag(kRead)) continue;
    RUBATO_ASSIGN_OR_RETURN(const grpc::ByteBuffer answer, server.Answer(incoming));
    stream.Write(answer, Tag(kWrite));
    stream.Read(&incoming, Tag(kRead));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RowClient>> ConnectMapStream(const SparseSetup& setup, const std::string& address) {
  RUBATO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, ConnectGrpc({}, address));
  auto client = std::make_unique<StreamClient>(setup.dimension, channel);
  RUBATO_RETURN_IF_ERROR(client->Start());
  return client;
}

}  // namespace rubato::bench
