#include "cli/report/text_table.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace rubato {
namespace {

size_t Columns(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string TextTable::Format() const {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Columns(row[i]));
  }
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows_[r].size(); ++i) {
      const std::string& cell = rows_[r][i];
      std::string padding(widths[i] - Columns(cell), ' ');
      absl::StrAppend(&line, i == 0 ? "" : "  ", i == 0 || left_ ? "" : padding, cell, i == 0 || left_ ? padding : "");
    }
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&text, line, "\n");
    if (r > 0) continue;
    for (size_t i = 0; i < widths.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : "  ");
      for (size_t c = 0; c < widths[i]; ++c) absl::StrAppend(&text, "─");
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace rubato
