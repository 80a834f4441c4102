#include "common/wire/payload_view.h"

#include <gtest/gtest.h>

#include <string>

namespace rubato {
namespace {

std::vector<grpc::Slice> Slices(const std::vector<std::string>& parts) {
  std::vector<grpc::Slice> slices;
  for (const std::string& part : parts) slices.emplace_back(part);
  return slices;
}

std::string Copy(const PayloadView& view, size_t offset, size_t n) {
  std::string copy(n, '?');
  EXPECT_TRUE(view.CopyTo(offset, n, copy.data()));
  return copy;
}

std::vector<std::string> Texts(absl::Span<const ByteSpan> pieces) {
  std::vector<std::string> texts;
  for (const ByteSpan& piece : pieces) texts.emplace_back(piece.begin(), piece.end());
  return texts;
}

TEST(PayloadViewTest, TakesARangeOutOfManySlices) {
  const PayloadView view(Slices({"ab", "", "cdef", "g", "hij"}), 1, 7);
  EXPECT_EQ(view.size(), 7u);
  EXPECT_EQ(Texts(view.pieces()), (std::vector<std::string>{"b", "cdef", "g", "h"}));
}

TEST(PayloadViewTest, AddsThePiecesOfARangeToOthers) {
  const PayloadView view(Slices({"ab", "", "cdef", "g", "hij"}), 1, 7);
  std::vector<ByteSpan> pieces;
  ASSERT_TRUE(view.AppendPieces(0, 3, &pieces));
  ASSERT_TRUE(view.AppendPieces(3, 0, &pieces));
  ASSERT_TRUE(view.AppendPieces(3, 4, &pieces));
  EXPECT_EQ(Texts(pieces), (std::vector<std::string>{"b", "cd", "ef", "g", "h"}));
}

TEST(PayloadViewTest, CopiesEveryRange) {
  const std::string whole = "bcdefgh";
  const PayloadView view(Slices({"ab", "", "cdef", "g", "hij"}), 1, 7);
  for (size_t offset = 0; offset <= 7; ++offset) {
    for (size_t n = 0; n <= 7 - offset; ++n) EXPECT_EQ(Copy(view, offset, n), whole.substr(offset, n));
  }
}

TEST(PayloadViewTest, PointsIntoASliceOnlyWhereOneHasItAll) {
  const PayloadView view(Slices({"ab", "cdef", "ghi"}), 0, 9);
  EXPECT_EQ(std::string(static_cast<const char*>(view.Contiguous(3, 3)), 3), "def");
  EXPECT_EQ(view.Contiguous(3, 3), view.pieces()[1].data() + 1);
  EXPECT_EQ(view.Contiguous(1, 2), nullptr);
  EXPECT_EQ(view.Contiguous(5, 2), nullptr);
}

TEST(PayloadViewTest, RefusesWhatIsNotThere) {
  const PayloadView view(Slices({"abc"}), 0, 3);
  char out[8] = "-------";
  EXPECT_FALSE(view.CopyTo(2, 2, out));
  EXPECT_FALSE(view.CopyTo(4, 0, out));
  EXPECT_FALSE(view.CopyTo(1, SIZE_MAX, out));
  EXPECT_EQ(out[0], '-');
  EXPECT_EQ(view.Contiguous(1, SIZE_MAX), nullptr);
  EXPECT_EQ(view.Contiguous(3, 1), nullptr);
  std::vector<ByteSpan> pieces;
  EXPECT_FALSE(view.AppendPieces(2, 2, &pieces));
  EXPECT_TRUE(pieces.empty());
  EXPECT_EQ(PayloadView().size(), 0u);
  EXPECT_TRUE(PayloadView().CopyTo(0, 0, out));
}

TEST(PayloadViewTest, PointersOutliveTheViewThatGaveThem) {
  // Short enough for gRPC to keep the bytes within the slice object.
  auto first = std::make_unique<PayloadView>(Slices({"tiny"}), 0, 4);
  const PayloadView second = *first;
  const void* data = first->Contiguous(0, 4);
  first.reset();
  EXPECT_EQ(second.Contiguous(0, 4), data);
  EXPECT_EQ(Copy(second, 0, 4), "tiny");
}

}  // namespace
}  // namespace rubato
