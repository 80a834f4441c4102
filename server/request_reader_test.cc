#include "server/request_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

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
    absl::StatusOr<PartitionRequest> request = ReadRequest(header_, payload_bytes, job_, 0);
    ASSERT_FALSE(request.ok());
    EXPECT_THAT(std::string(request.status().message()), HasSubstr(what));
  }

  v1::JobDescription job_;
  v1::ExchangeRequest header_;
};

TEST_F(RequestReaderTest, ReadsAPush) {
  MakePush();
  absl::StatusOr<PartitionRequest> request = ReadRequest(header_, 80, job_, 0);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->kind, PartitionRequest::Kind::kPushPull);
  EXPECT_EQ(request->chunks, (std::vector<uint32_t>{0, 1}));
  ASSERT_EQ(request->contributions.size(), 2u);
  EXPECT_EQ(request->contributions[1].step, 3);
  EXPECT_EQ(request->contributions[1].examples, 64u);
}

TEST_F(RequestReaderTest, ReadsAnEmptyPushWithoutPayload) {
  MakePush();
  header_.mutable_push_pull()->set_examples(0);
  EXPECT_TRUE(ReadRequest(header_, 0, job_, 0).ok());
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

TEST_F(RequestReaderTest, MarksGradientsThatAreNotFinite) {
  MakePush();
  absl::StatusOr<PartitionRequest> request = ReadRequest(header_, 80, job_, 0);
  std::vector<float> values(20, 1.0f);
  values[13] = std::numeric_limits<float>::infinity();
  v1::ExchangeRequest empty;
  empty.set_job_fingerprint(1);
  // Two slices, so that the second chunk is cut in two.
  std::vector<grpc::Slice> slices;
  slices.emplace_back(values.data(), 60);
  slices.emplace_back(values.data() + 15, 20);
  absl::StatusOr<DecodedRequest> decoded = DecodeRequest(EncodeRequest(empty, std::move(slices)));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  AttachGradients(job_, std::make_shared<const PayloadView>(std::move(decoded->payload)), &*request);
  EXPECT_FALSE(request->contributions[0].non_finite);
  EXPECT_EQ(static_cast<const float*>(request->contributions[0].gradient.data)[9], 1.0f);
  EXPECT_TRUE(request->contributions[1].non_finite);
  EXPECT_EQ(request->contributions[1].examples, 0u);
}

}  // namespace
}  // namespace rubato::server
