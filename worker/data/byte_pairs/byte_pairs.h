#ifndef RUBATO_WORKER_DATA_BYTE_PAIRS_BYTE_PAIRS_H_
#define RUBATO_WORKER_DATA_BYTE_PAIRS_BYTE_PAIRS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rubato::worker {

// What text is cut into before byte pairs are looked for, so that none goes across the border of two words: a run of
// letters and digits (ASCII's, and bytes over 127), a run of other bytes that are not white space, either of them with
// the space that stands before it, or a run of white space. 1 to kMaxPieceBytes bytes, where a longer run is cut.
constexpr size_t kMaxPieceBytes = 64;

// How long the first piece of a text, which is not empty, is. It depends on the first kMaxPieceBytes + 1 bytes alone.
size_t PieceLength(absl::string_view text);

// Tokens of text, by byte-pair encoding (Gage 1994; Sennrich, Haddow and Birch 2016, over bytes): 0 to 255 are the
// bytes, and each further token stands for two earlier ones that followed each other often in the text that they were
// learned from (BytePairLearner). Every text can be encoded. Immutable and thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(const BytePairs pairs, BytePairs::Load("bible.pairs"));
//   pairs.Encode("In the beginning", [&](uint32_t token) { ... });
class BytePairs {
 public:
  struct Pair {
    uint32_t left = 0, right = 0;
    bool operator==(const Pair&) const = default;
  };
  static constexpr uint32_t kBytes = 256;
  // So that a token fits into 16 bits.
  static constexpr uint32_t kMaxTokens = 65536;

  // pairs[i] is what token 256 + i stands for. `lower_case`: A to Z are read as a to z. InvalidArgument: too many, a
  // pair of a later token, or one that is there twice.
  static absl::StatusOr<BytePairs> Create(bool lower_case, std::vector<Pair> pairs);
  // Reads what Text has written (docs/formats.md). InvalidArgument: "<path>:<line>: " and what is wrong. Otherwise the
  // errors of ReadFile.
  static absl::StatusOr<BytePairs> Load(const std::string& path);
  std::string Text() const;

  uint32_t size() const { return kBytes + static_cast<uint32_t>(pairs_.size()); }
  bool lower_case() const { return lower_case_; }
  // The bytes that a token stands for.
  const std::string& bytes(uint32_t token) const { return bytes_[token]; }

  // Visits the text's tokens: of each piece, in which the pair that was learned first is put together wherever it is,
  // from left to right, until there is none. A text's encoding is that of its pieces.
  void Encode(absl::string_view text, absl::FunctionRef<void(uint32_t token)> visit) const;

 private:
  BytePairs(bool lower_case, std::vector<Pair> pairs);

  static uint64_t Packed(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }
  // The token of a pair; kMaxTokens: there is none.
  uint32_t TokenOf(uint32_t left, uint32_t right) const;
  // Puts the piece's bytes together, in `tokens`, and returns of how many it consists at the end.
  size_t EncodePiece(absl::string_view piece, uint32_t* tokens) const;

  bool lower_case_;
  std::vector<Pair> pairs_;
  std::vector<std::string> bytes_;
  // By Packed.
  absl::flat_hash_map<uint64_t, uint32_t> tokens_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_BYTE_PAIRS_BYTE_PAIRS_H_
