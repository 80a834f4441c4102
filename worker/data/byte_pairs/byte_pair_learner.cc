#include "worker/data/byte_pairs/byte_pair_learner.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"

namespace rubato::worker {
namespace {

using Pair = std::pair<uint32_t, uint32_t>;

// The pieces, as tokens, and which two follow each other how often.
class PairCounts {
 public:
  explicit PairCounts(const absl::flat_hash_map<std::string, int64_t>& pieces) {
    for (const auto& [piece, count] : pieces) {
      Piece& added = pieces_.emplace_back(Piece{.tokens = {}, .count = count});
      for (const char byte : piece) added.tokens.push_back(static_cast<unsigned char>(byte));
      Count(pieces_.size() - 1, 1);
    }
    Rank();
  }

  // The pair to put together next. False: none is there twice.
  bool Next(Pair* pair) {
    while (!ranked_.empty()) {
      const Ranked top = ranked_.top();
      ranked_.pop();
      // Otherwise it has been counted anew since, and is further down.
      if (pairs_[top.pair].count != top.count) continue;
      *pair = top.pair;
      return true;
    }
    return false;
  }

  void PutTogether(const Pair& pair, uint32_t token) {
    const std::vector<size_t> where = std::move(pairs_[pair].pieces);
    for (const size_t index : where) {
      if (!Has(pieces_[index].tokens, pair)) continue;
      Count(index, -1);
      Join(pair, token, &pieces_[index].tokens);
      Count(index, 1);
    }
    Rank();
  }

 private:
  struct Piece {
    std::vector<uint32_t> tokens;
    int64_t count = 0;
  };
  struct Counted {
    int64_t count = 0;
    // Where it is; it may be there no more, and an index may be there twice.
    std::vector<size_t> pieces;
  };
  struct Ranked {
    int64_t count;
    Pair pair;
    // The greatest is next.
    bool operator<(const Ranked& other) const { return std::tie(count, other.pair) < std::tie(other.count, pair); }
  };

  // Adds the piece's pairs to the counts, or takes them away.
  void Count(size_t index, int64_t sign) {
    const Piece& piece = pieces_[index];
    for (size_t i = 0; i + 1 < piece.tokens.size(); ++i) {
      const Pair pair = {piece.tokens[i], piece.tokens[i + 1]};
      Counted& counted = pairs_[pair];
      counted.count += sign * piece.count;
      if (sign > 0 && (counted.pieces.empty() || counted.pieces.back() != index)) counted.pieces.push_back(index);
      changed_.push_back(pair);
    }
  }

  static bool Has(const std::vector<uint32_t>& tokens, const Pair& pair) {
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (tokens[i] == pair.first && tokens[i + 1] == pair.second) return true;
    }
    return false;
  }

  static void Join(const Pair& pair, uint32_t token, std::vector<uint32_t>* tokens) {
    size_t kept = 0;
    for (size_t i = 0; i < tokens->size(); ++kept) {
      const bool is_pair = i + 1 < tokens->size() && (*tokens)[i] == pair.first && (*tokens)[i + 1] == pair.second;
      (*tokens)[kept] = is_pair ? token : (*tokens)[i];
      i += is_pair ? 2 : 1;
    }
    tokens->resize(kept);
  }

  // The counts that have changed.
  void Rank() {
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const Pair& pair : changed_) {
      if (const int64_t count = pairs_[pair].count; count > 1) ranked_.push({count, pair});
    }
    changed_.clear();
  }

  std::vector<Piece> pieces_;
  absl::flat_hash_map<Pair, Counted> pairs_;
  std::vector<Pair> changed_;
  std::priority_queue<Ranked> ranked_;
};

}  // namespace

void BytePairLearner::Add(absl::string_view text) {
  bytes_ += static_cast<int64_t>(text.size());
  std::string piece;
  while (!text.empty()) {
    piece = std::string(text.substr(0, PieceLength(text)));
    text.remove_prefix(piece.size());
    if (lower_case_) absl::AsciiStrToLower(&piece);
    ++pieces_[piece];
  }
}

int64_t BytePairLearner::TokensOf(const BytePairs& pairs) const {
  int64_t tokens = 0;
  for (const auto& piece : pieces_) {
    pairs.Encode(piece.first, [&](uint32_t) { tokens += piece.second; });
  }
  return tokens;
}

absl::StatusOr<BytePairs> BytePairLearner::Learn(uint32_t tokens) const {
  PairCounts counts(pieces_);
  std::vector<BytePairs::Pair> pairs;
  Pair next;
  for (uint32_t token = BytePairs::kBytes; token < tokens && counts.Next(&next); ++token) {
    pairs.push_back({next.first, next.second});
    counts.PutTogether(next, token);
  }
  return BytePairs::Create(lower_case_, std::move(pairs));
}

}  // namespace rubato::worker
