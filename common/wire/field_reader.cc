#include "common/wire/field_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status.h"

namespace rubato {
namespace {

using google::protobuf::FieldDescriptor;

// https://protobuf.dev/programming-guides/encoding
enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2, kGroupStart = 3, kGroupEnd = 4, kFixed32 = 5 };

// Protobuf's own limits: bytes of a tag or length, bytes of any varint, nesting.
constexpr int kTagBytesMax = 5;
constexpr int kVarintBytesMax = 10;
constexpr int kGroupDepthMax = 100;

int WireTypeOf(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64:
      return kFixed64;
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return kFixed32;
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
    case FieldDescriptor::TYPE_MESSAGE:
      return kLength;
    case FieldDescriptor::TYPE_GROUP:
      return kGroupStart;
    case FieldDescriptor::TYPE_BOOL:
    case FieldDescriptor::TYPE_ENUM:
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_INT64:
    case FieldDescriptor::TYPE_SINT32:
    case FieldDescriptor::TYPE_SINT64:
    case FieldDescriptor::TYPE_UINT32:
    case FieldDescriptor::TYPE_UINT64:
      break;
  }
  return kVarint;
}

absl::Status CutOff(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": is cut off by the end of the message, or its varint is too long"));
}

}  // namespace

SliceCursor::SliceCursor(absl::Span<const grpc::Slice> slices) : slices_(slices) {
  for (const grpc::Slice& slice : slices_) remaining_ += slice.size();
}

template <typename Visit>
void SliceCursor::Advance(size_t bytes, Visit visit) {
  position_ += bytes;
  remaining_ -= bytes;
  while (bytes > 0) {
    const grpc::Slice& slice = slices_.front();
    const size_t taken = std::min(bytes, slice.size() - offset_);
    visit(slice.begin() + offset_, taken);
    offset_ += taken;
    bytes -= taken;
    if (offset_ == slice.size()) NextSlice();
  }
}

bool SliceCursor::ReadVarint(int max_bytes, uint64_t* value) {
  *value = 0;
  for (int i = 0; i < max_bytes; ++i) {
    uint8_t byte = 0;
    if (!ReadByte(&byte)) return false;
    *value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) return true;
  }
  return false;
}

bool SliceCursor::Skip(uint64_t bytes) {
  if (bytes > remaining_) return false;
  Advance(bytes, [](const uint8_t*, size_t) {});
  return true;
}

bool SliceCursor::Append(size_t bytes, std::string* out) {
  if (bytes > remaining_) return false;
  Advance(bytes, [out](const uint8_t* data, size_t n) { out->append(reinterpret_cast<const char*>(data), n); });
  return true;
}

absl::StatusOr<FieldReader::Field> FieldReader::Next() {
  Field field{.start = cursor_};
  field.begin = cursor_.position();
  RUBATO_ASSIGN_OR_RETURN(const Tag tag, ReadTag());
  RUBATO_RETURN_IF_ERROR(CheckWireType(tag));
  field.number = tag.number;
  field.content = cursor_.position();
  if (tag.wire_type == kGroupStart) {
    RUBATO_RETURN_IF_ERROR(SkipGroup(tag.number));
  } else {
    RUBATO_RETURN_IF_ERROR(SkipScalar(tag, &field.content));
  }
  field.end = cursor_.position();
  return field;
}

std::string FieldReader::Name(uint32_t number) const {
  const FieldDescriptor* field = type_.FindFieldByNumber(static_cast<int>(number));
  if (field == nullptr) return absl::StrCat(type_.name(), " field ", number);
  return absl::StrCat(type_.name(), ".", field->name());
}

absl::StatusOr<FieldReader::Tag> FieldReader::ReadTag() {
  const size_t at = cursor_.position();
  uint64_t value = 0;
  if (!cursor_.ReadVarint(kTagBytesMax, &value)) return CutOff(absl::StrCat(type_.name(), ": the tag at byte ", at));
  const Tag tag{.number = static_cast<uint32_t>(value >> 3), .wire_type = static_cast<int>(value & 7)};
  if (value > UINT32_MAX || tag.number == 0) {
    return absl::InvalidArgumentError(absl::StrCat(type_.name(), ": the tag at byte ", at, " has field number ",
                                                   value >> 3, ", which must be in [1, 2^29)"));
  }
  return tag;
}

absl::Status FieldReader::CheckWireType(const Tag& tag) const {
  const FieldDescriptor* field = type_.FindFieldByNumber(static_cast<int>(tag.number));
  if (field == nullptr) return absl::OkStatus();
  const int expected = WireTypeOf(*field);
  if (tag.wire_type == expected || (field->is_packable() && tag.wire_type == kLength)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Name(tag.number), ": has wire type ", tag.wire_type, ", expected ", expected));
}

absl::Status FieldReader::SkipScalar(const Tag& tag, size_t* content) {
  uint64_t value = 0;
  bool whole = false;
  switch (tag.wire_type) {
    case kVarint:
      whole = cursor_.ReadVarint(kVarintBytesMax, &value);
      break;
    case kFixed64:
      whole = cursor_.Skip(8);
      break;
    case kFixed32:
      whole = cursor_.Skip(4);
      break;
    case kLength:
      if (!cursor_.ReadVarint(kTagBytesMax, &value)) break;
      *content = cursor_.position();
      if (!cursor_.Skip(value)) {
        return absl::InvalidArgumentError(absl::StrCat(Name(tag.number), ": its length of ", value,
                                                       " bytes runs past the end of the message, ", cursor_.remaining(),
                                                       " bytes are left"));
      }
      whole = true;
      break;
    case kGroupEnd:
      return absl::InvalidArgumentError(absl::StrCat(Name(tag.number), ": a group ends here that did not begin"));
    default:
      return absl::InvalidArgumentError(
          absl::StrCat(Name(tag.number), ": has wire type ", tag.wire_type, ", which does not exist"));
  }
  return whole ? absl::OkStatus() : CutOff(Name(tag.number));
}

absl::Status FieldReader::SkipGroup(uint32_t number) {
  // Which group an end belongs to is left to the parser that reads the field; here it is only passed.
  int depth = 1;
  while (depth > 0) {
    RUBATO_ASSIGN_OR_RETURN(const Tag tag, ReadTag());
    if (tag.wire_type == kGroupStart) {
      if (++depth > kGroupDepthMax) {
        return absl::InvalidArgumentError(
            absl::StrCat(Name(number), ": groups are nested deeper than ", kGroupDepthMax));
      }
    } else if (tag.wire_type == kGroupEnd) {
      --depth;
    } else {
      size_t content = 0;
      RUBATO_RETURN_IF_ERROR(SkipScalar(tag, &content));
    }
  }
  return absl::OkStatus();
}

}  // namespace rubato
