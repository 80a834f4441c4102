#include "server/request_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/optimizer/encoded_gradient.h"

namespace rubato::server {
namespace {

using testing::HasSubstr;

class RequestReaderTest : public testing::Test {
 protected:
  RequestReaderTest() {
    job_.set_fingerprint(42);
    for (uint32_t i = 0; i < 3; ++i) {
      v1::ChunkPlacement* chunk = job_.add_chunks();
      chunk->set_length(10);
      chunk->set_server(i == 2 ? 1 : 0);
    }
    header_.set_job_fingerprint(42);
    header_.set_generation(1);
    header_.mutable_task()->set_role(v1::TaskId::WORKER);
    header_.mutable_task()->set_incarnation(7);
  }

  void MakePush() {
    v1::PushPull* push = header_.mutable_push_pull();
    push->set_step(3);
    push->set_examples(64);
    for (uint32_t i = 0; i < 2; ++i) {
      v1::ChunkUpdate* update = push->add_chunks();
      update->set_chunk(i);
      update->set_length(10);
    }
  }

  void ExpectRefused(uint64_t payload_bytes, const std::string& what) {
    absl::StatusOr<ReceivedRequest> received = Read(payload_bytes);
    ASSERT_FALSE(received.ok());
    EXPECT_TRUE(absl::IsInvalidArgument(received.status())) << received.status();
    EXPECT_THAT(std::string(received.status().message()), HasSubstr(what));
  }

  // The message with a payload of so many zeros.
  absl::StatusOr<ReceivedRequest> Read(uint64_t payload_bytes) {
    return Read(std::vector<uint8_t>(payload_bytes), payload_bytes);
  }

  // The message as it arrives, with the payload in two slices that are cut anywhere.
  absl::StatusOr<ReceivedRequest> Read(const std::vector<uint8_t>& payload, size_t cut) {
    std::vector<grpc::Slice> slices;
    slices.emplace_back(payload.data(), cut);
    slices.emplace_back(payload.data() + cut, payload.size() - cut);
    absl::StatusOr<DecodedRequest> decoded = DecodeRequest(EncodeRequest(header_, std::move(slices)));
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    message_ = *std::move(decoded);
    return ReadRequest(message_, region_, job_, 0);
  }

  v1::JobDescription job_;
  v1::ExchangeRequest header_;
  std::shared_ptr<const SharedRegion> region_;
  DecodedRequest message_;  // The last one.
};

TEST_F(RequestReaderTest, ReadsAPush) {
  MakePush();
  absl::StatusOr<ReceivedRequest> received = Read(80);
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->gradient_bytes, 80u);
  EXPECT_FALSE(received->in_shared_memory);
  const PartitionRequest& request = received->request;
  EXPECT_EQ(request.kind, PartitionRequest::Kind::kPushPull);
  EXPECT_EQ(request.chunks, (std::vector<uint32_t>{0, 1}));
  ASSERT_EQ(request.contributions.size(), 2u);
  EXPECT_EQ(request.contributions[1].header->step, 3);
  EXPECT_EQ(request.contributions[1].examples, 64u);
  EXPECT_EQ(request.contributions[1].header->slice.shard(), 0u);
}

TEST_F(RequestReaderTest, ReadsWhichExamplesAPushIsOf) {
  MakePush();
  v1::ShardSlice* slice = header_.mutable_push_pull()->mutable_slice();
  slice->set_shard(7);
  slice->set_begin(20);
  slice->set_end(84);
  absl::StatusOr<ReceivedRequest> received = Read(80);
  ASSERT_TRUE(received.ok()) << received.status();
  for (const Contribution& contribution : received->request.contributions) {
    EXPECT_EQ(contribution.header->slice.shard(), 7u);
    EXPECT_EQ(contribution.header->slice.begin(), 20);
    EXPECT_EQ(contribution.header->slice.end(), 84);
  }
  slice->set_end(19);
  ExpectRefused(80, "push_pull.slice: begins with example 20 and ends before 19; allowed: 0 <= begin <= end");
  slice->set_end(84);
  slice->set_shard(0);
  ExpectRefused(80, "push_pull.slice.shard: 0; shards are numbered from 1");
}

TEST_F(RequestReaderTest, ReadsAnEmptyPushWithoutPayload) {
  MakePush();
  header_.mutable_push_pull()->set_examples(0);
  absl::StatusOr<ReceivedRequest> received = Read(0);
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->request.contributions[0].gradient, nullptr);
  ExpectRefused(80, "payload: 80 bytes");
}

TEST_F(RequestReaderTest, RefusesAnotherJob) {
  MakePush();
  header_.set_job_fingerprint(43);
  ExpectRefused(80, "job_fingerprint");
}

TEST_F(RequestReaderTest, RefusesAPayloadOfAnotherLength) {
  MakePush();
  ExpectRefused(79, "payload: 79 bytes; push_pull.chunks declare 80");
  ExpectRefused(3, "payload: 3 bytes; push_pull.chunks declare 80");
  ExpectRefused(81, "payload: 81 bytes; push_pull.chunks declare 80");
}

TEST_F(RequestReaderTest, RefusesAnotherChunkLength) {
  MakePush();
  header_.mutable_push_pull()->mutable_chunks(1)->set_length(9);
  ExpectRefused(80, "push_pull.chunks[1].length: 9");
}

TEST_F(RequestReaderTest, RefusesUnknownChunksAndThoseOfAnotherServer) {
  header_.mutable_pull()->add_chunks(99);
  ExpectRefused(0, "pull.chunks[0]: unknown chunk 99");
  header_.mutable_pull()->set_chunks(0, 2);
  ExpectRefused(0, "server 1");
}

TEST_F(RequestReaderTest, RefusesNumbersThatMakeNoSense) {
  MakePush();
  header_.mutable_push_pull()->set_step(-1);
  ExpectRefused(80, "step: -1");
  header_.mutable_push_pull()->set_step(0);
  header_.mutable_push_pull()->set_epoch(std::numeric_limits<double>::quiet_NaN());
  ExpectRefused(80, "push_pull.epoch");
  header_.mutable_push_pull()->set_epoch(0);
  header_.mutable_push_pull()->mutable_chunks(0)->set_base_version(-5);
  ExpectRefused(80, "push_pull.chunks[0].base_version");
}

TEST_F(RequestReaderTest, RefusesTasksWithoutAnIncarnationOrTheRightRole) {
  MakePush();
  header_.mutable_task()->set_incarnation(0);
  ExpectRefused(80, "task.incarnation");
  header_.mutable_task()->set_incarnation(1);
  header_.mutable_task()->set_role(v1::TaskId::EVALUATOR);
  ExpectRefused(80, "task.role: evaluator 0");
}

TEST_F(RequestReaderTest, RefusesAMissingOperationAndAPayloadOnAPull) {
  ExpectRefused(0, "operation: missing");
  header_.mutable_pull()->add_chunks(0);
  ExpectRefused(4, "payload: 4 bytes");
}

std::vector<uint8_t> Bytes(const std::vector<float>& values) {
  const auto* begin = reinterpret_cast<const uint8_t*>(values.data());
  return std::vector<uint8_t>(begin, begin + values.size() * sizeof(float));
}

TEST_F(RequestReaderTest, AttachesGradientsThatAreNotFiniteAndTheyAreSeen) {
  MakePush();
  std::vector<float> values(20, 1.0f);
  values[13] = std::numeric_limits<float>::infinity();
  absl::StatusOr<ReceivedRequest> received = Read(Bytes(values), 54);
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_TRUE(IsFinite(*received->request.contributions[0].gradient, 10));
  EXPECT_FALSE(IsFinite(*received->request.contributions[1].gradient, 10));
}

TEST_F(RequestReaderTest, LeavesGradientsWhereTheyArrived) {
  MakePush();
  absl::StatusOr<ReceivedRequest> received = Read(Bytes(std::vector<float>(20, 1.0f)), 54);
  ASSERT_TRUE(received.ok()) << received.status();
  const absl::Span<const ByteSpan> arrived = message_.payload.pieces();
  const EncodedGradient& whole = *received->request.contributions[0].gradient;
  ASSERT_EQ(whole.pieces.size(), 1u);
  EXPECT_EQ(whole.pieces[0].data(), arrived[0].data());
  EXPECT_EQ(whole.pieces[0].size(), 40u);
  const EncodedGradient& cut = *received->request.contributions[1].gradient;
  ASSERT_EQ(cut.pieces.size(), 2u);
  EXPECT_EQ(cut.pieces[0].size(), 14u);
  EXPECT_EQ(cut.pieces[1].data(), arrived[1].data());
}

TEST_F(RequestReaderTest, KeepsAMessageUntilItsLastGradientIsGone) {
  MakePush();
  std::shared_ptr<const EncodedGradient> last;
  {
    absl::StatusOr<ReceivedRequest> received = Read(Bytes(std::vector<float>(20, 3.0f)), 54);
    ASSERT_TRUE(received.ok()) << received.status();
    last = received->request.contributions[1].gradient;
  }
  message_ = {};
  std::vector<uint8_t> bytes;
  for (const ByteSpan& piece : last->pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
  EXPECT_EQ(bytes, Bytes(std::vector<float>(10, 3.0f)));
}

TEST_F(RequestReaderTest, JoinsEncodedGradientsThatAreCut) {
  MakePush();
  for (int i = 0; i < 2; ++i) {
    header_.mutable_push_pull()->mutable_chunks(i)->set_codec(v1::BF16);
    header_.mutable_push_pull()->mutable_chunks(i)->set_encoded_bytes(20);
  }
  std::vector<uint8_t> payload(40);
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<uint8_t>(i);
  absl::StatusOr<ReceivedRequest> received = Read(payload, 27);
  ASSERT_TRUE(received.ok()) << received.status();
  const EncodedGradient& whole = *received->request.contributions[0].gradient;
  ASSERT_EQ(whole.pieces.size(), 1u);
  EXPECT_EQ(whole.pieces[0].data(), message_.payload.pieces()[0].data());
  EXPECT_EQ(whole.codec, v1::BF16);
  const EncodedGradient& cut = *received->request.contributions[1].gradient;
  ASSERT_EQ(cut.pieces.size(), 1u);
  EXPECT_EQ(std::vector<uint8_t>(cut.pieces[0].begin(), cut.pieces[0].end()),
            std::vector<uint8_t>(payload.begin() + 20, payload.end()));
}

TEST_F(RequestReaderTest, RefusesCodecsAndSizesThatItDoesNotKnow) {
  MakePush();
  v1::ChunkUpdate* update = header_.mutable_push_pull()->mutable_chunks(1);
  update->set_codec(static_cast<v1::Codec>(99));
  ExpectRefused(80, "push_pull.chunks[1].codec: 99 is not known here");
  update->set_codec(v1::BF16);
  ExpectRefused(60, "push_pull.chunks[1].encoded_bytes: 0; 10 elements as BF16 take 20");
  update->set_encoded_bytes(20);
  ExpectRefused(80, "payload: 80 bytes; push_pull.chunks declare 60");
  EXPECT_TRUE(Read(60).ok());
  update->set_codec(v1::NONE);
  ExpectRefused(60, "push_pull.chunks[1].encoded_bytes: 20; 10 float32 take 40");
}

TEST_F(RequestReaderTest, RefusesEncodedGradientsThatNoSenderMakes) {
  MakePush();
  v1::ChunkUpdate* update = header_.mutable_push_pull()->mutable_chunks(1);
  update->set_codec(v1::TOP_K);
  update->set_encoded_bytes(12);
  std::vector<uint8_t> payload = Bytes(std::vector<float>(10, 1.0f));
  // One element, the 200th of ten.
  for (uint8_t byte : {1, 0, 0, 0, 200, 0, 0, 0, 0, 0, 128, 63}) payload.push_back(byte);
  absl::Status status = Read(payload, 45).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("push_pull.chunks[1]"));
}

TEST_F(RequestReaderTest, RefusesPlacesOutsideOfSharedMemory) {
  MakePush();
  for (int i = 0; i < 2; ++i) header_.add_shared()->set_bytes(40);
  ExpectRefused(0, "shared_session: 0");
  header_.set_shared_session(5);
  ExpectRefused(0, "shared_session: 5 is not known here as one of worker 0");
  absl::StatusOr<std::shared_ptr<SharedRegion>> region = SharedRegion::Create("test", 4096);
  ASSERT_TRUE(region.ok()) << region.status();
  region_ = *region;
  ExpectRefused(80, "payload: 80 bytes, but shared is not empty");
  header_.mutable_shared(1)->set_bytes(44);
  ExpectRefused(0, "shared[1].bytes: 44; push_pull.chunks[1] declares 40");
  header_.mutable_shared(1)->set_bytes(40);
  absl::StatusOr<ReceivedRequest> received = Read(0);
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_TRUE(received->in_shared_memory);
  EXPECT_EQ(received->gradient_bytes, 80u);
  EXPECT_EQ(received->request.contributions[0].gradient->pieces[0].data(), region_->Find(0, 40));
  for (uint64_t offset : {uint64_t{4057}, std::numeric_limits<uint64_t>::max() - 7}) {
    header_.mutable_shared(1)->set_offset(offset);
    ExpectRefused(0, "shared[1]: 40 bytes from");
  }
  header_.mutable_shared(1)->set_offset(0);
  header_.mutable_shared()->RemoveLast();
  ExpectRefused(0, "shared: 1 entries; push_pull.chunks has 2");
}

TEST_F(RequestReaderTest, AnAbsentChunkHasNoExamplesAndNothingOfThePayload) {
  MakePush();
  header_.mutable_push_pull()->mutable_chunks(0)->set_absent(true);
  absl::StatusOr<ReceivedRequest> received = Read(40);
  ASSERT_TRUE(received.ok()) << received.status();
  const std::vector<Contribution>& contributions = received->request.contributions;
  EXPECT_EQ(contributions[0].examples, 0u);
  EXPECT_EQ(contributions[0].gradient, nullptr);
  EXPECT_EQ(contributions[1].examples, 64u);
  ASSERT_NE(contributions[1].gradient, nullptr);
  ExpectRefused(80, "payload: 80 bytes; push_pull.chunks declare 40");
  header_.mutable_push_pull()->mutable_chunks(0)->set_encoded_bytes(40);
  ExpectRefused(40, "push_pull.chunks[0].encoded_bytes: 40; allowed: 0 if it is absent");
}

TEST_F(RequestReaderTest, HyperparametersAreOfClientsAlone) {
  MakePush();
  header_.mutable_push_pull()->add_groups()->set_learning_rate(1);
  ExpectRefused(80, "push_pull.groups: present; allowed: absent unless the job's workers are clients");
}

TEST_F(RequestReaderTest, ReadsAnAssignment) {
  header_.mutable_assign()->add_chunks(1);
  header_.mutable_assign()->add_chunks(0);
  absl::StatusOr<ReceivedRequest> received = Read(80);
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_TRUE(received->assigns);
  EXPECT_EQ(received->request.chunks, (std::vector<uint32_t>{1, 0}));
  ASSERT_EQ(received->request.contributions.size(), 2u);
  EXPECT_NE(received->request.contributions[0].gradient, nullptr);
  ExpectRefused(40, "payload: 40 bytes");
  header_.mutable_assign()->add_chunks(2);
  ExpectRefused(120, "chunk 2 is in partition 0 of server 1");
  header_.mutable_assign()->set_chunks(2, 3);
  ExpectRefused(120, "assign.chunks[2]: unknown chunk 3; the job has 3");
  header_.mutable_assign()->clear_chunks();
  ExpectRefused(0, "assign.chunks: none given; at least one is needed");
}

}  // namespace
}  // namespace rubato::server
