#include "worker/data/column_keys.h"

#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace rubato::worker {
namespace {

bool IsOfWord(char letter) { return absl::ascii_isalnum(letter) || static_cast<unsigned char>(letter) > 127; }

}  // namespace

std::optional<int64_t> BucketOf(absl::string_view field, double width) {
  double number = 0;
  if (!absl::SimpleAtod(field, &number)) return std::nullopt;
  const double bucket = std::floor(number / width);
  constexpr double kEnd = 0x1p63;
  // Written so that NaN is refused.
  if (!(bucket >= -kEnd && bucket < kEnd)) return std::nullopt;
  return static_cast<int64_t>(bucket);
}

void ForEachWord(absl::string_view text, absl::FunctionRef<void(absl::string_view)> visit) {
  std::string word;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size() && IsOfWord(text[end])) ++end;
    if (end > begin) {
      word = absl::AsciiStrToLower(text.substr(begin, end - begin));
      visit(word);
    }
    begin = end + 1;
  }
}

}  // namespace rubato::worker
