#ifndef RUBATO_COMMON_WIRE_FIELD_READER_H_
#define RUBATO_COMMON_WIRE_FIELD_READER_H_

#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "google/protobuf/descriptor.h"

namespace rubato {

// Reads forward through slices as if they were one piece. The slices outlive it. Cheap to copy.
class SliceCursor {
 public:
  explicit SliceCursor(absl::Span<const grpc::Slice> slices);

  // Bytes passed, and bytes to come.
  size_t position() const { return position_; }
  size_t remaining() const { return remaining_; }

  // Each returns false at the end of the slices; how far the cursor then moved is unspecified.
  bool ReadByte(uint8_t* byte) {
    if (remaining_ == 0) return false;
    while (offset_ == slices_.front().size()) NextSlice();
    *byte = slices_.front().begin()[offset_++];
    ++position_;
    --remaining_;
    return true;
  }
  // Also false for a varint of more than `max_bytes` bytes.
  bool ReadVarint(int max_bytes, uint64_t* value);
  bool Skip(uint64_t bytes);
  bool Append(size_t bytes, std::string* out);

 private:
  void NextSlice() {
    slices_.remove_prefix(1);
    offset_ = 0;
  }
  // Calls visit(pointer, bytes) for each piece of the next `bytes`, which are there.
  template <typename Visit>
  void Advance(size_t bytes, Visit visit);

  absl::Span<const grpc::Slice> slices_;
  size_t offset_ = 0;  // In slices_[0].
  size_t position_ = 0;
  size_t remaining_ = 0;
};

// Walks the top-level fields of a serialized protobuf message without parsing what is in them. Never reads past the
// end, and keeps no more than a few words, whatever the bytes are.
//
//   FieldReader reader(slices, *v1::ExchangeRequest::descriptor());
//   while (!reader.AtEnd()) {
//     RUBATO_ASSIGN_OR_RETURN(FieldReader::Field field, reader.Next());
class FieldReader {
 public:
  struct Field {
    uint32_t number = 0;
    // In the message: the field with its tag, [begin, end), and what a length-delimited one holds, [content, end).
    size_t begin = 0;
    size_t content = 0;
    size_t end = 0;
    // At `begin`.
    SliceCursor start;
  };

  // `slices` and `type` outlive the reader.
  FieldReader(absl::Span<const grpc::Slice> slices, const google::protobuf::Descriptor& type)
      : cursor_(slices), type_(type) {}

  bool AtEnd() const { return cursor_.remaining() == 0; }

  // Passes the next field. InvalidArgument, naming the field, when it is cut off, runs past the end, or is known to the
  // message with another wire type. The reader must not be used further after that.
  absl::StatusOr<Field> Next();

  // "ExchangeRequest.payload", or "ExchangeRequest field 99" for a number that the message does not know.
  std::string Name(uint32_t number) const;

 private:
  struct Tag {
    uint32_t number = 0;
    int wire_type = 0;
  };

  absl::StatusOr<Tag> ReadTag();
  absl::Status CheckWireType(const Tag& tag) const;
  // Passes the content of any field but a group.
  absl::Status SkipScalar(const Tag& tag, size_t* content);
  absl::Status SkipGroup(uint32_t number);

  SliceCursor cursor_;
  const google::protobuf::Descriptor& type_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_WIRE_FIELD_READER_H_
