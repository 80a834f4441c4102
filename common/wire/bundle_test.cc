#include "common/wire/bundle.h"

#include <gmock/gmock.h>
#include <grpcpp/support/slice.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"
#include "proto/parameter_server.pb.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Flat(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

// Cut in pieces of up to `piece_max` bytes.
grpc::ByteBuffer Cut(const std::string& bytes, size_t piece_max, Random* random) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size();) {
    const size_t piece = std::min<size_t>(1 + random->Below(piece_max), bytes.size() - at);
    slices.emplace_back(bytes.data() + at, piece);
    at += piece;
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::vector<std::string> InBundle(const grpc::ByteBuffer& bundle) {
  const absl::StatusOr<std::vector<grpc::ByteBuffer>> messages = Unbundle(bundle);
  EXPECT_TRUE(messages.ok()) << messages.status();
  std::vector<std::string> texts;
  if (messages.ok()) std::transform(messages->begin(), messages->end(), std::back_inserter(texts), Flat);
  return texts;
}

TEST(BundleTest, HoldsMessagesHoweverTheyAreCut) {
  Random random(1, 1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> sent;
    std::vector<grpc::ByteBuffer> messages;
    const size_t count = 2 + random.Below(9);
    for (size_t i = 0; i < count; ++i) {
      sent.emplace_back(random.Below(4) == 0 ? 0 : random.Below(400), static_cast<char>('a' + i));
      messages.push_back(Cut(sent.back(), 90, &random));
    }
    const grpc::ByteBuffer bundle = Bundle(std::move(messages));
    EXPECT_EQ(InBundle(bundle), sent);
    // As it arrives.
    grpc::ByteBuffer arrived = Cut(Flat(bundle), 1 + random.Below(200), &random);
    EXPECT_TRUE(IsBundle(&arrived));
    EXPECT_EQ(InBundle(arrived), sent);
  }
}

TEST(BundleTest, IsWhatProtobufReads) {
  v1::ExchangeRequest first, second, both;
  first.set_request_id(7);
  second.set_payload("weights");
  std::vector<grpc::ByteBuffer> messages;
  for (const v1::ExchangeRequest& request : {first, second}) {
    const grpc::Slice slice(request.SerializeAsString());
    messages.emplace_back(&slice, 1);
  }
  ASSERT_TRUE(both.ParseFromString(Flat(Bundle(std::move(messages)))));
  EXPECT_THAT(both.bundle(), ElementsAre(first.SerializeAsString(), second.SerializeAsString()));
  const grpc::Slice slice(both.SerializeAsString());
  grpc::ByteBuffer written(&slice, 1);
  EXPECT_TRUE(IsBundle(&written));
  EXPECT_THAT(InBundle(written), ElementsAre(first.SerializeAsString(), second.SerializeAsString()));
}

TEST(BundleTest, OneMessageAndNoneAreNoBundle) {
  v1::ExchangeRequest request;
  request.set_request_id(7);
  const grpc::Slice slice(request.SerializeAsString());
  std::vector<grpc::ByteBuffer> one;
  one.emplace_back(&slice, 1);
  grpc::ByteBuffer alone = Bundle(std::move(one));
  EXPECT_FALSE(IsBundle(&alone));
  EXPECT_EQ(Flat(alone), request.SerializeAsString());
  grpc::ByteBuffer never_filled;
  EXPECT_FALSE(IsBundle(&never_filled));
  grpc::ByteBuffer empty(nullptr, 0);
  EXPECT_FALSE(IsBundle(&empty));
}

TEST(BundleTest, NamesWhatIsWrong) {
  v1::ExchangeRequest request;
  request.add_bundle("abc");
  request.add_bundle("defg");
  const std::string good = request.SerializeAsString();
  for (size_t bytes = 2; bytes < good.size(); ++bytes) {
    if (bytes == 6) continue;  // The first of the two.
    const grpc::Slice slice(good.data(), bytes);
    const absl::Status status = Unbundle(grpc::ByteBuffer(&slice, 1)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bytes << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr("ExchangeRequest")) << bytes;
  }
  request.set_request_id(7);
  const grpc::Slice slice(request.SerializeAsString());
  const absl::Status status = Unbundle(grpc::ByteBuffer(&slice, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(status.message(), HasSubstr("request_id: beside bundle"));
}

}  // namespace
}  // namespace rubato
