#include "common/wire/exchange_codec.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/random.h"

namespace rubato {
namespace {

constexpr size_t kPayloadMax = 1 << 16;

v1::ExchangeRequest RequestHeader() {
  v1::ExchangeRequest header;
  header.set_request_id(77);
  header.mutable_task()->set_role(v1::TaskId::WORKER);
  header.mutable_task()->set_incarnation(0x0123456789abcdefu);
  header.set_job_fingerprint(99);
  header.set_partition(3);
  header.mutable_push_pull()->set_step(12);
  header.mutable_push_pull()->set_examples(64);
  header.mutable_push_pull()->set_epoch(0.5);
  header.mutable_push_pull()->add_chunks()->set_length(4);
  return header;
}

v1::ExchangeReply ReplyHeader() {
  v1::ExchangeReply header;
  header.set_request_id(77);
  header.set_outcome(v1::ExchangeReply::OK);
  header.set_message("text");
  header.add_chunks()->set_length(2);
  header.add_chunks()->set_length(1 << 20);
  header.mutable_plan()->add_members()->set_index(5);
  return header;
}

std::string Flat(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

grpc::ByteBuffer Buffer(const std::vector<std::string>& parts) {
  std::vector<grpc::Slice> slices;
  for (const std::string& part : parts) slices.emplace_back(part);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Copy(const PayloadView& payload) {
  std::string copy(payload.size(), '?');
  EXPECT_TRUE(payload.CopyTo(0, copy.size(), copy.data()));
  return copy;
}

std::string PayloadField(const std::string& payload) {
  v1::ExchangeRequest request;
  request.set_payload(payload);
  return request.SerializeAsString();
}

// That the decoder sees in `bytes`, cut into `parts`, what protobuf sees.
void ExpectDecodesAsProtobufDoes(const std::string& bytes, const std::vector<std::string>& parts) {
  v1::ExchangeRequest expected;
  ASSERT_TRUE(expected.ParseFromString(bytes));
  const absl::StatusOr<DecodedRequest> decoded = DecodeRequest(Buffer(parts), kPayloadMax);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(Copy(decoded->payload), expected.payload());
  EXPECT_TRUE(decoded->header.payload().empty());
  expected.clear_payload();
  EXPECT_EQ(decoded->header.SerializeAsString(), expected.SerializeAsString());
}

std::string ErrorOf(const std::string& bytes) {
  const absl::Status status = DecodeRequest(Buffer({bytes}), kPayloadMax).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(ExchangeCodecTest, WritesTheBytesThatProtobufWrites) {
  v1::ExchangeRequest request = RequestHeader();
  v1::ExchangeReply reply = ReplyHeader();
  const grpc::ByteBuffer request_bytes =
      EncodeRequest(request, {grpc::Slice("abc"), grpc::Slice(""), grpc::Slice("d")});
  const grpc::ByteBuffer reply_bytes = EncodeReply(reply, {grpc::Slice(std::string(300, 'x'))});
  const grpc::ByteBuffer bare_bytes = EncodeRequest(request, {});
  EXPECT_EQ(Flat(bare_bytes), request.SerializeAsString());
  request.set_payload("abcd");
  EXPECT_EQ(Flat(request_bytes), request.SerializeAsString());
  reply.set_payload(std::string(300, 'x'));
  EXPECT_EQ(Flat(reply_bytes), reply.SerializeAsString());
}

TEST(ExchangeCodecTest, ReadsWhatProtobufWritesHoweverItIsCut) {
  v1::ExchangeRequest request = RequestHeader();
  request.set_payload(std::string(200, 'p') + "end");
  const std::string bytes = request.SerializeAsString();
  std::vector<std::string> single;
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    ExpectDecodesAsProtobufDoes(bytes, {bytes.substr(0, cut), "", bytes.substr(cut)});
    if (cut < bytes.size()) single.push_back(bytes.substr(cut, 1));
  }
  ExpectDecodesAsProtobufDoes(bytes, single);
}

TEST(ExchangeCodecTest, ReadsReplies) {
  v1::ExchangeReply reply = ReplyHeader();
  reply.set_payload("weights!");
  const absl::StatusOr<DecodedReply> decoded = DecodeReply(Buffer({reply.SerializeAsString()}), 8);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(Copy(decoded->payload), "weights!");
  EXPECT_EQ(decoded->header.SerializeAsString(), ReplyHeader().SerializeAsString());
}

TEST(ExchangeCodecTest, TakesThePayloadFromAnyPositionAndTheLastOfSeveral) {
  const std::string header = RequestHeader().SerializeAsString();
  ExpectDecodesAsProtobufDoes(header, {header});
  ExpectDecodesAsProtobufDoes("", {});
  const std::string first = PayloadField("first") + header;
  ExpectDecodesAsProtobufDoes(first, {first});
  const std::string twice = PayloadField("first") + header + PayloadField("second") + header;
  ExpectDecodesAsProtobufDoes(twice, {twice});
  const std::string emptied = PayloadField("first") + header + std::string("\x7a\x00", 2);
  ExpectDecodesAsProtobufDoes(emptied, {emptied});
}

TEST(ExchangeCodecTest, ABufferThatWasNeverFilledIsAnEmptyMessage) {
  const absl::StatusOr<DecodedRequest> decoded = DecodeRequest(grpc::ByteBuffer(), kPayloadMax);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->payload.size(), 0u);
}

TEST(ExchangeCodecTest, PassesOverUnknownFields) {
  // Fields 100 to 103 as varint, fixed64, bytes, fixed32; group 104 that holds a group and a field 15.
  const std::string unknown = std::string("\xa0\x06\xff\x01") + "\xa9\x06" + "12345678" + "\xb2\x06\x02" + "xy" +
                              "\xbd\x06" + "1234" + "\xc3\x06" + "\x7a\x01" + "q" + "\x0b\x08\x01\x0c" + "\xc4\x06";
  const std::string bytes = unknown + PayloadField("data") + unknown + RequestHeader().SerializeAsString();
  ExpectDecodesAsProtobufDoes(bytes, {bytes});
}

TEST(ExchangeCodecTest, DoesNotCopyThePayloadInOrOut) {
  auto owner = std::make_shared<std::vector<char>>(1000, 'w');
  std::weak_ptr<std::vector<char>> alive = owner;
  const char* data = owner->data();
  {
    const grpc::ByteBuffer buffer = EncodeReply(ReplyHeader(), {SliceOf(owner, data, 1000)});
    owner.reset();
    absl::StatusOr<DecodedReply> decoded = DecodeReply(buffer, kPayloadMax);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->payload.Contiguous(0, 1000), data);
    EXPECT_FALSE(alive.expired());
  }
  EXPECT_TRUE(alive.expired());
}

TEST(ExchangeCodecTest, NamesTheFieldThatIsMalformed) {
  // The payload: cut length, length past the end, varint instead of bytes, overlong length.
  EXPECT_TRUE(absl::StartsWith(ErrorOf("\x7a\x80"), "ExchangeRequest.payload: is cut off"));
  EXPECT_EQ(ErrorOf("\x7a\x05"
                    "abc"),
            "ExchangeRequest.payload: its length of 5 bytes runs past the end of the message, 3 bytes are left");
  EXPECT_EQ(ErrorOf("\x78\x01"), "ExchangeRequest.payload: has wire type 0, expected 2");
  EXPECT_TRUE(absl::StartsWith(ErrorOf("\x7a\x80\x80\x80\x80\x80\x01"), "ExchangeRequest.payload: is cut off"));
  // Other fields.
  EXPECT_TRUE(absl::StartsWith(ErrorOf("\x08\xff"), "ExchangeRequest.request_id: is cut off"));
  EXPECT_TRUE(absl::StartsWith(ErrorOf("\x19"
                                       "123"),
                               "ExchangeRequest.job_fingerprint: is cut off"));
  EXPECT_EQ(ErrorOf("\x30\x01"), "ExchangeRequest.push_pull: has wire type 0, expected 2");
  EXPECT_TRUE(absl::StartsWith(ErrorOf("\x32\x02\x08\xff"), "ExchangeRequest.push_pull: its 4 bytes"));
  // Tags.
  EXPECT_TRUE(absl::StartsWith(ErrorOf("\xff"), "ExchangeRequest: the tag at byte 0: is cut off"));
  EXPECT_TRUE(absl::StartsWith(ErrorOf(std::string("\x08\x01\x02\x00", 4)), "ExchangeRequest: the tag at byte 2 has"));
  EXPECT_TRUE(absl::StrContains(ErrorOf("\xa6\x06"), "field 100: has wire type 6"));
  EXPECT_TRUE(absl::StrContains(ErrorOf("\xa4\x06"), "field 100: a group ends here"));
}

TEST(ExchangeCodecTest, NamesAReplyTextThatIsNotUtf8) {
  const absl::Status status = DecodeReply(Buffer({"\x3a\x01\xff"}), kPayloadMax).status();
  EXPECT_TRUE(absl::StartsWith(status.message(), "ExchangeReply.message: ")) << status;
}

TEST(ExchangeCodecTest, BoundsHeaderPayloadAndNesting) {
  EXPECT_TRUE(DecodeRequest(Buffer({PayloadField(std::string(100, 'x'))}), 100).ok());
  EXPECT_EQ(DecodeRequest(Buffer({PayloadField(std::string(101, 'x'))}), 100).status().message(),
            "ExchangeRequest.payload: has 101 bytes, at most 100 are allowed");
  v1::ExchangeRequest request;
  for (size_t i = 0; i < kHeaderBytesMax; ++i) request.mutable_pull()->add_chunks(1);
  EXPECT_TRUE(absl::StartsWith(ErrorOf(request.SerializeAsString()), "ExchangeRequest.pull: with it the fields"));
  EXPECT_TRUE(absl::StrContains(ErrorOf(std::string(1000, '\x63')), "nested deeper than 100"));
}

// One to four random changes: a byte replaced, removed or added, the end cut off, or a part repeated.
std::string Mutate(std::string bytes, Random& random) {
  for (uint64_t changes = 1 + random.Below(4); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = random.Below(bytes.size());
    switch (random.Below(5)) {
      case 0:
        bytes[at] = static_cast<char>(random.Next32());
        break;
      case 1:
        bytes.erase(at, 1 + random.Below(3));
        break;
      case 2:
        bytes.insert(at, 1, static_cast<char>(random.Next32()));
        break;
      case 3:
        bytes.resize(at);
        break;
      default:
        bytes += bytes.substr(at, random.Below(40));
    }
  }
  return bytes;
}

std::vector<std::string> CutRandomly(const std::string& bytes, Random& random) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < bytes.size();) {
    parts.push_back(bytes.substr(at, random.Below(30)));
    at += parts.back().size();
  }
  return parts;
}

TEST(ExchangeCodecTest, AgreesWithProtobufOnMutatedMessages) {
  const uint64_t seed = 20240607;
  v1::ExchangeRequest request = RequestHeader();
  request.set_payload(std::string(50, 'p'));
  const std::string valid = request.SerializeAsString();
  int accepted = 0;
  for (uint64_t round = 0; round < 50000; ++round) {
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", round ", round));
    Random random(seed, round);
    const std::string bytes = Mutate(valid, random);
    const std::vector<std::string> parts = CutRandomly(bytes, random);
    const absl::StatusOr<DecodedRequest> decoded = DecodeRequest(Buffer(parts), kPayloadMax);
    v1::ExchangeRequest expected;
    if (decoded.ok()) {
      ++accepted;
      ExpectDecodesAsProtobufDoes(bytes, parts);
    } else if (expected.ParseFromString(bytes)) {
      // The decoder is stricter in two places alone.
      EXPECT_TRUE(absl::StrContains(decoded.status().message(), "wire type") ||
                  absl::StrContains(decoded.status().message(), "field number"))
          << decoded.status();
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace rubato
