#include "worker/data/separated_fields.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "worker/data/shown_field.h"

namespace rubato::worker {
namespace {

constexpr char kQuote = '"';
absl::Status BadQuotes(size_t column, absl::string_view field) {
  return absl::InvalidArgumentError(
      absl::StrCat("column ", column, ": value ", ShownField(field),
                   "; allowed: text without quotes, or between two of them and with each inside twice"));
}

}  // namespace

size_t SeparatedRecordLength(absl::string_view text, char separator) {
  bool begins = true, quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == kQuote && (begins || quoted)) {
      if (quoted && i + 1 < text.size() && text[i + 1] == kQuote) {
        ++i;  // One of the text.
      } else {
        quoted = !quoted;
      }
    } else if (letter == '\n' && !quoted) {
      return i;
    }
    begins = letter == separator && !quoted;
  }
  return absl::string_view::npos;
}

absl::Status SeparatedFields::Split(absl::string_view record) {
  fields_.clear();
  unquoted_.clear();
  // Views into it stay.
  unquoted_.reserve(record.size());
  for (absl::string_view rest = record;;) {
    if (!rest.empty() && rest[0] == kQuote) {
      if (absl::Status status = TakeQuoted(&rest); !status.ok()) return status;
    } else {
      const absl::string_view field = rest.substr(0, rest.find(separator_));
      if (field.find(kQuote) != absl::string_view::npos) return BadQuotes(fields_.size(), field);
      fields_.push_back(field);
      rest.remove_prefix(field.size());
    }
    if (rest.empty()) return absl::OkStatus();
    rest.remove_prefix(1);
  }
}

absl::Status SeparatedFields::TakeQuoted(absl::string_view* rest) {
  const absl::string_view whole = *rest;
  const size_t begin = unquoted_.size();
  for (size_t from = 1;;) {
    const size_t quote = whole.find(kQuote, from);
    if (quote == absl::string_view::npos) return BadQuotes(fields_.size(), whole);
    unquoted_.append(whole.data() + from, quote - from);
    const size_t after = quote + 1;
    if (after == whole.size() || whole[after] == separator_) {
      fields_.push_back(absl::string_view(unquoted_).substr(begin));
      rest->remove_prefix(after);
      return absl::OkStatus();
    }
    if (whole[after] != kQuote) return BadQuotes(fields_.size(), whole);
    unquoted_.push_back(kQuote);
    from = after + 1;
  }
}

absl::Status SeparatedFields::SplitHeader(absl::string_view record) {
  absl::ConsumePrefix(&record, "\xef\xbb\xbf");
  return Split(record);
}

absl::StatusOr<size_t> FindColumn(const std::vector<absl::string_view>& names, absl::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no column \"", name,
                     "\"; there are: ", absl::StrJoin(names, ", ", [](std::string* text, absl::string_view one) {
                       absl::StrAppend(text, ShownField(one));
                     })));
  }
  if (std::find(found + 1, names.end(), name) != names.end()) {
    return absl::InvalidArgumentError(absl::StrCat("two columns \"", name, "\"; expected: one"));
  }
  return static_cast<size_t>(found - names.begin());
}

}  // namespace rubato::worker
