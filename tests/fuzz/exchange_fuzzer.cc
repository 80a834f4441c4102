// Messages of the data path, cut into slices anywhere: the decoders see what protobuf sees, and what the server makes
// of an accepted request fits its job.
//
// Input: the message, then where it is cut (CutSlices).
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "common/shared_memory/region.h"
#include "common/wire/exchange_codec.h"
#include "kernels/optimizer/encoded_gradient.h"
#include "server/request_reader.h"
#include "tests/fuzz/fuzz_target.h"

namespace rubato {
namespace {

constexpr size_t kPayloadMax = 1 << 14;
constexpr uint32_t kServer = 1;

// Chunks 0 to 3 are this server's, in two partitions; chunk 4 is another's.
v1::JobDescription MakeJob() {
  v1::JobDescription job;
  job.set_fingerprint(77);
  for (uint32_t chunk = 0; chunk < 5; ++chunk) {
    v1::ChunkPlacement* placement = job.add_chunks();
    placement->set_tensor(chunk);
    placement->set_length(chunk < 3 ? 4 : 300);
    placement->set_server(chunk < 4 ? kServer : 0);
    placement->set_partition(chunk % 2);
  }
  return job;
}

// The last byte of the input is a number of cuts, the two before it for each say where.
grpc::ByteBuffer CutSlices(Trailer* trailer, std::string* bytes) {
  std::vector<size_t> cuts(trailer->TakeByte() % 8);
  for (size_t& cut : cuts) cut = trailer->TakeWord();
  *bytes = trailer->Rest();
  for (size_t& cut : cuts) cut %= bytes->size() + 1;
  cuts.push_back(bytes->size());
  std::sort(cuts.begin(), cuts.end());
  std::vector<grpc::Slice> slices;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    slices.emplace_back(bytes->data() + begin, cut - begin);
    begin = cut;
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Copy(const PayloadView& payload) {
  std::string copy(payload.size(), '?');
  RUBATO_FUZZ_CHECK(payload.CopyTo(0, copy.size(), copy.data()), "the payload is not all there");
  return copy;
}

std::string Flat(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  RUBATO_FUZZ_CHECK(buffer.DumpToSingleSlice(&slice).ok(), "the encoded message is not readable");
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

// That `header` and `payload` are what protobuf finds in `bytes`, and that `encoded` says the same.
template <typename Message>
void CheckAgainstProtobuf(const std::string& bytes, const Message& header, const PayloadView& payload,
                          const grpc::ByteBuffer& encoded) {
  Message expected;
  RUBATO_FUZZ_CHECK(expected.ParseFromString(bytes), "protobuf refuses what was decoded");
  const std::string copy = Copy(payload);
  RUBATO_FUZZ_CHECK(copy == expected.payload(), "protobuf finds another payload");
  RUBATO_FUZZ_CHECK(header.payload().empty(), "the payload is there twice");
  Message again;
  RUBATO_FUZZ_CHECK(again.ParseFromString(Flat(encoded)), "protobuf refuses what was encoded");
  RUBATO_FUZZ_CHECK(again.SerializeAsString() == expected.SerializeAsString(), "encoding changes the message");
  expected.clear_payload();
  RUBATO_FUZZ_CHECK(header.SerializeAsString() == expected.SerializeAsString(), "protobuf finds other fields");
}

// The memory of whatever worker a message says that it is of.
std::shared_ptr<const SharedRegion> Region() {
  static const std::shared_ptr<const SharedRegion> region = *SharedRegion::Create("fuzz", 4096);
  return region;
}

// That what the server reads is of this job and this server, and can be walked through.
void CheckRequest(const DecodedRequest& message, const v1::JobDescription& job) {
  absl::StatusOr<server::ReceivedRequest> received = server::ReadRequest(message, Region(), job, kServer);
  if (!received.ok()) {
    RUBATO_FUZZ_CHECK(absl::IsInvalidArgument(received.status()), received.status());
    return;
  }
  const server::PartitionRequest& request = received->request;
  for (const uint32_t chunk : request.chunks) {
    RUBATO_FUZZ_CHECK(chunk < 4 && job.chunks(chunk).partition() == message.header.partition(), chunk);
  }
  if (request.kind != server::PartitionRequest::Kind::kPushPull) return;
  RUBATO_FUZZ_CHECK(request.contributions.size() == request.chunks.size(), "chunks without a contribution");
  for (size_t i = 0; i < request.chunks.size(); ++i) {
    const server::Contribution& contribution = request.contributions[i];
    RUBATO_FUZZ_CHECK((contribution.gradient == nullptr) == (contribution.examples == 0), contribution.examples);
    // Reads every byte.
    if (contribution.gradient != nullptr) IsFinite(*contribution.gradient, job.chunks(request.chunks[i]).length());
  }
}

}  // namespace
}  // namespace rubato

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rubato;
  const v1::JobDescription job = MakeJob();
  Trailer trailer(data, size);
  std::string bytes;
  const grpc::ByteBuffer buffer = CutSlices(&trailer, &bytes);
  if (absl::StatusOr<DecodedRequest> request = DecodeRequest(buffer, kPayloadMax); request.ok()) {
    const std::string payload = Copy(request->payload);
    CheckAgainstProtobuf(bytes, request->header, request->payload,
                         EncodeRequest(request->header, {grpc::Slice(payload)}));
    CheckRequest(*request, job);
  }
  if (absl::StatusOr<DecodedReply> reply = DecodeReply(buffer, kPayloadMax); reply.ok()) {
    const std::string payload = Copy(reply->payload);
    CheckAgainstProtobuf(bytes, reply->header, reply->payload, EncodeReply(reply->header, {grpc::Slice(payload)}));
  }
  return 0;
}
