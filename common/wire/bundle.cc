#include "common/wire/bundle.h"

#include <grpc/slice.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/wire/field_reader.h"
#include "common/wire/varint.h"
#include "proto/parameter_server.pb.h"

namespace rubato {
namespace {

constexpr uint32_t kBundleField = v1::ExchangeRequest::kBundleFieldNumber;
static_assert(v1::ExchangeReply::kBundleFieldNumber == kBundleField);
constexpr uint32_t kTag = kBundleField << 3 | 2;
// As a varint.
constexpr std::array<uint8_t, 2> kTagBytes = {static_cast<uint8_t>((kTag & 0x7f) | 0x80), kTag >> 7};
static_assert(kTag >> 7 < 0x80);

// Of a message in a bundle: what goes before it, its header, and a chunk's payload.
constexpr size_t kSlicesUsual = 3;

grpc::Slice Part(const grpc::Slice& slice, size_t begin, size_t end) {
  const grpc_slice whole = slice.c_slice();
  grpc::Slice part(grpc_slice_sub(whole, begin, end), grpc::Slice::STEAL_REF);
  grpc_slice_unref(whole);
  return part;
}

// Cuts slices in parts, from the front to the back.
class SliceCutter {
 public:
  explicit SliceCutter(const std::vector<grpc::Slice>* slices) : slices_(slices) {}

  // REQUIRES: [begin, end) is there, and not before what was cut last.
  grpc::ByteBuffer Cut(size_t begin, size_t end) {
    parts_.clear();
    while (begin < end) {
      const grpc::Slice& slice = (*slices_)[number_];
      if (begin >= start_ + slice.size()) {
        start_ += slice.size();
        ++number_;
        continue;
      }
      const size_t part_end = std::min(end, start_ + slice.size());
      parts_.push_back(Part(slice, begin - start_, part_end - start_));
      begin = part_end;
    }
    return grpc::ByteBuffer(parts_.data(), parts_.size());
  }

 private:
  const std::vector<grpc::Slice>* const slices_;
  size_t number_ = 0;
  size_t start_ = 0;                // Of that slice.
  std::vector<grpc::Slice> parts_;  // Of the message being cut.
};

}  // namespace

grpc::ByteBuffer Bundle(std::vector<grpc::ByteBuffer> messages) {
  if (messages.size() == 1) {
    grpc::ByteBuffer alone;
    alone.Swap(&messages.front());
    return alone;
  }
  std::vector<grpc::Slice> all, slices;
  all.reserve(kSlicesUsual * messages.size());
  for (const grpc::ByteBuffer& message : messages) {
    std::string front(kTagBytes.begin(), kTagBytes.end());
    AppendVarint(message.Length(), &front);
    all.emplace_back(front);
    // Nothing is compressed before it is sent, so this cannot fail; a buffer that was never filled has no slices.
    slices.clear();
    if (message.Valid() && message.Dump(&slices).ok()) std::move(slices.begin(), slices.end(), std::back_inserter(all));
  }
  return grpc::ByteBuffer(all.data(), all.size());
}

bool IsBundle(grpc::ByteBuffer* message) {
  if (!message->Valid()) return false;
  grpc::ProtoBufferReader reader(message);
  size_t seen = 0;
  const void* data = nullptr;
  int bytes = 0;
  while (seen < kTagBytes.size() && reader.Next(&data, &bytes)) {
    const size_t here = std::min(kTagBytes.size() - seen, static_cast<size_t>(bytes));
    if (!std::equal(kTagBytes.begin() + seen, kTagBytes.begin() + seen + here, static_cast<const uint8_t*>(data))) {
      return false;
    }
    seen += here;
  }
  return seen == kTagBytes.size();
}

absl::StatusOr<std::vector<grpc::ByteBuffer>> Unbundle(const grpc::ByteBuffer& bundle) {
  std::vector<grpc::Slice> slices;
  if (!bundle.Dump(&slices).ok()) return absl::InvalidArgumentError("bundle: it could not be decompressed");
  FieldReader reader(slices, *v1::ExchangeRequest::descriptor());
  SliceCutter cutter(&slices);
  std::vector<FieldReader::Field> fields;
  while (!reader.AtEnd()) {
    RUBATO_ASSIGN_OR_RETURN(const FieldReader::Field field, reader.Next());
    if (field.number != kBundleField) {
      return absl::InvalidArgumentError(
          absl::StrCat(reader.Name(field.number), ": beside bundle; allowed: bundle alone"));
    }
    fields.push_back(field);
  }
  // A buffer can be swapped but not moved, so that a list that grew would copy them.
  std::vector<grpc::ByteBuffer> messages(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    grpc::ByteBuffer message = cutter.Cut(fields[i].content, fields[i].end);
    messages[i].Swap(&message);
  }
  return messages;
}

}  // namespace rubato
