#include "worker/data/byte_pairs/byte_pairs.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato::worker {
namespace {

constexpr absl::string_view kFirstLine = "rubato byte pairs 1";
// Before the pairs: kFirstLine, lower_case and tokens.
constexpr size_t kHeaderLines = 3;
// More than a piece has is of no use, and a few pairs, each of the one before twice, would fill the memory.
constexpr size_t kMaxTokenBytes = kMaxPieceBytes;

enum class Kind { kSpace, kLetter, kOther };

Kind KindOf(char byte) {
  if (absl::ascii_isspace(byte)) return Kind::kSpace;
  return absl::ascii_isalnum(byte) || static_cast<unsigned char>(byte) > 127 ? Kind::kLetter : Kind::kOther;
}

// "words 12", as a line of the header is: the number.
std::optional<uint32_t> HeaderNumber(absl::string_view line, absl::string_view name) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
  uint32_t number = 0;
  if (fields.size() != 2 || fields[0] != name || !absl::SimpleAtoi(fields[1], &number)) return std::nullopt;
  return number;
}

absl::Status BadLine(const std::string& path, size_t line, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ":", line + 1, ": ", what));
}

std::string Shown(absl::string_view line) {
  constexpr size_t kShown = 80;
  return absl::StrCat("\"", absl::CHexEscape(line.substr(0, kShown)), line.size() > kShown ? "..." : "", "\"");
}

absl::Status CheckPair(const std::vector<BytePairs::Pair>& pairs, size_t at) {
  const uint32_t token = BytePairs::kBytes + static_cast<uint32_t>(at);
  const auto [left, right] = pairs[at];
  if (left < token && right < token) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("token ", token, " is of ", left, " and ", right, "; allowed: 0 to ", token - 1));
}

}  // namespace

size_t PieceLength(absl::string_view text) {
  text = text.substr(0, kMaxPieceBytes + 1);
  const size_t most = std::min(text.size(), kMaxPieceBytes);
  // A space goes with what stands behind it.
  const size_t begin = text[0] == ' ' && text.size() > 1 && KindOf(text[1]) != Kind::kSpace ? 1 : 0;
  const Kind kind = KindOf(text[begin]);
  size_t end = begin + 1;
  while (end < most && KindOf(text[end]) == kind) ++end;
  const bool takes_next =
      kind == Kind::kSpace && end > 1 && end < text.size() && text[end - 1] == ' ' && KindOf(text[end]) != Kind::kSpace;
  return takes_next ? end - 1 : end;
}

BytePairs::BytePairs(bool lower_case, std::vector<Pair> pairs) : lower_case_(lower_case), pairs_(std::move(pairs)) {
  bytes_.reserve(size());
  for (uint32_t byte = 0; byte < kBytes; ++byte) bytes_.emplace_back(1, static_cast<char>(byte));
  tokens_.reserve(pairs_.size());
}

absl::StatusOr<BytePairs> BytePairs::Create(bool lower_case, std::vector<Pair> pairs) {
  if (pairs.size() > kMaxTokens - kBytes) {
    return absl::InvalidArgumentError(absl::StrCat(pairs.size(), " pairs; allowed: at most ", kMaxTokens - kBytes,
                                                   ", with the bytes ", kMaxTokens, " tokens"));
  }
  BytePairs result(lower_case, std::move(pairs));
  for (size_t i = 0; i < result.pairs_.size(); ++i) {
    RUBATO_RETURN_IF_ERROR(CheckPair(result.pairs_, i));
    const auto [left, right] = result.pairs_[i];
    const uint32_t token = kBytes + static_cast<uint32_t>(i);
    const auto [known, added] = result.tokens_.try_emplace(Packed(left, right), token);
    if (!added) {
      return absl::InvalidArgumentError(absl::StrCat("token ", token, " is of ", left, " and ", right, ", as token ",
                                                     known->second, " is; allowed: once"));
    }
    result.bytes_.push_back(result.bytes_[left] + result.bytes_[right]);
    if (result.bytes_.back().size() > kMaxTokenBytes) {
      return absl::InvalidArgumentError(absl::StrCat("token ", token, " is of ", result.bytes_.back().size(),
                                                     " bytes; allowed: at most ", kMaxTokenBytes));
    }
  }
  return result;
}

absl::StatusOr<BytePairs> BytePairs::Load(const std::string& path) {
  RUBATO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (lines.size() <= kHeaderLines || lines[0] != kFirstLine) {
    return BadLine(
        path, 0, absl::StrCat(Shown(lines[0]), "; expected: ", Shown(kFirstLine), ", as rubato byte-pairs writes it"));
  }
  const std::optional<uint32_t> lower_case = HeaderNumber(lines[1], "lower_case");
  if (!lower_case.has_value() || *lower_case > 1) {
    return BadLine(path, 1, absl::StrCat(Shown(lines[1]), "; expected: lower_case 0, or lower_case 1"));
  }
  const std::optional<uint32_t> tokens = HeaderNumber(lines[2], "tokens");
  if (!tokens.has_value() || *tokens < kBytes || *tokens > kMaxTokens) {
    return BadLine(path, 2, absl::StrCat(Shown(lines[2]), "; expected: tokens 256 to ", kMaxTokens));
  }
  const size_t end = kHeaderLines + (*tokens - kBytes);
  // The last line ends, too.
  if (lines.size() != end + 1 || !lines[end].empty()) {
    return BadLine(path, 2,
                   absl::StrCat(*tokens, " tokens; expected: ", *tokens - kBytes, " lines below, and not ",
                                lines.size() - kHeaderLines - (lines.back().empty() ? 1 : 0)));
  }
  std::vector<Pair> pairs;
  for (size_t line = kHeaderLines; line < end; ++line) {
    const std::vector<absl::string_view> fields = absl::StrSplit(lines[line], ' ');
    Pair pair;
    if (fields.size() != 3 || !absl::SimpleAtoi(fields[0], &pair.left) || !absl::SimpleAtoi(fields[1], &pair.right)) {
      return BadLine(path, line,
                     absl::StrCat(Shown(lines[line]), "; expected: two tokens and their text, with a space between"));
    }
    pairs.push_back(pair);
    RUBATO_RETURN_IF_ERROR(Annotate(CheckPair(pairs, pairs.size() - 1), absl::StrCat(path, ":", line + 1)));
  }
  absl::StatusOr<BytePairs> result = Create(*lower_case == 1, std::move(pairs));
  return result.ok() ? std::move(result) : Annotate(result.status(), path);
}

std::string BytePairs::Text() const {
  std::string text = absl::StrCat(kFirstLine, "\nlower_case ", lower_case_ ? 1 : 0, "\ntokens ", size(), "\n");
  for (size_t i = 0; i < pairs_.size(); ++i) {
    // A space inside would be a fourth field.
    std::string shown = absl::CHexEscape(bytes_[kBytes + i]);
    std::replace(shown.begin(), shown.end(), ' ', '_');
    absl::StrAppend(&text, pairs_[i].left, " ", pairs_[i].right, " ", shown, "\n");
  }
  return text;
}

uint32_t BytePairs::TokenOf(uint32_t left, uint32_t right) const {
  const auto found = tokens_.find(Packed(left, right));
  return found == tokens_.end() ? kMaxTokens : found->second;
}

size_t BytePairs::EncodePiece(absl::string_view piece, uint32_t* tokens) const {
  size_t n = piece.size();
  for (size_t i = 0; i < n; ++i) {
    const char byte = lower_case_ ? absl::ascii_tolower(piece[i]) : piece[i];
    tokens[i] = static_cast<unsigned char>(byte);
  }
  // joined[i]: what tokens i and i + 1 are together. As tokens are numbered in the order in which they were learned,
  // the least of them is the one to put together.
  std::array<uint32_t, kMaxPieceBytes> joined;
  for (size_t i = 0; i + 1 < n; ++i) joined[i] = TokenOf(tokens[i], tokens[i + 1]);
  while (n > 1) {
    const size_t at = std::min_element(joined.begin(), joined.begin() + (n - 1)) - joined.begin();
    if (joined[at] == kMaxTokens) break;
    tokens[at] = joined[at];
    std::copy(tokens + at + 2, tokens + n, tokens + at + 1);
    std::copy(joined.begin() + at + 1, joined.begin() + (n - 1), joined.begin() + at);
    --n;
    if (at > 0) joined[at - 1] = TokenOf(tokens[at - 1], tokens[at]);
    if (at + 1 < n) joined[at] = TokenOf(tokens[at], tokens[at + 1]);
  }
  return n;
}

void BytePairs::Encode(absl::string_view text, absl::FunctionRef<void(uint32_t token)> visit) const {
  std::array<uint32_t, kMaxPieceBytes> tokens;
  while (!text.empty()) {
    const size_t length = PieceLength(text);
    const size_t n = EncodePiece(text.substr(0, length), tokens.data());
    for (size_t i = 0; i < n; ++i) visit(tokens[i]);
    text.remove_prefix(length);
  }
}

}  // namespace rubato::worker
