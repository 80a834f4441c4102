#include "common/wire/payload_size.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(PayloadSizeTest, AcceptsExactlyFourBytesPerFloat) {
  EXPECT_TRUE(CheckPayloadSize("f", 3, 12).ok());
  EXPECT_TRUE(CheckPayloadSize("f", 0, 0).ok());
  for (const size_t bytes : {0, 11, 13, 16}) EXPECT_FALSE(CheckPayloadSize("f", 3, bytes).ok()) << bytes;
  // 4 * floats would wrap around.
  EXPECT_FALSE(CheckPayloadSize("f", uint64_t{1} << 62, 0).ok());
}

TEST(PayloadSizeTest, NamesFieldAndBothSizes) {
  const absl::Status status = CheckPayloadSize("ExchangeRequest.payload", 3, 8);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "ExchangeRequest.payload: has 8 bytes, but the chunks declare 3 floats of 4 bytes");
}

TEST(PayloadSizeTest, ARequestCarriesTheGradientsOfItsPushAlone) {
  v1::ExchangeRequest request;
  request.mutable_push_pull()->add_chunks()->set_length(2);
  request.mutable_push_pull()->add_chunks()->set_length(1);
  EXPECT_TRUE(CheckPayloadSize(request, 0).ok());
  EXPECT_FALSE(CheckPayloadSize(request, 12).ok());
  request.mutable_push_pull()->set_examples(64);
  EXPECT_TRUE(CheckPayloadSize(request, 12).ok());
  EXPECT_FALSE(CheckPayloadSize(request, 0).ok());
  request.mutable_pull()->add_chunks(1);
  EXPECT_TRUE(CheckPayloadSize(request, 0).ok());
  EXPECT_FALSE(CheckPayloadSize(request, 4).ok());
}

TEST(PayloadSizeTest, AReplyCarriesWeightsOnlyWhenItIsOk) {
  v1::ExchangeReply reply;
  reply.set_outcome(v1::ExchangeReply::OK);
  reply.add_chunks()->set_length(5);
  EXPECT_TRUE(CheckPayloadSize(reply, 20).ok());
  EXPECT_FALSE(CheckPayloadSize(reply, 16).ok());
  reply.set_outcome(v1::ExchangeReply::WAITING);
  EXPECT_TRUE(CheckPayloadSize(reply, 0).ok());
  EXPECT_FALSE(CheckPayloadSize(reply, 20).ok());
}

}  // namespace
}  // namespace rubato
