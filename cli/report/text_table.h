#ifndef RUBATO_CLI_REPORT_TEXT_TABLE_H_
#define RUBATO_CLI_REPORT_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace rubato {

// Lays out rows as columns of text for a terminal. The first row is the header and is underlined; the first column is
// aligned to the left and the others to the right. Cells are counted in UTF-8 characters of one column each.
//
//   TextTable table({"mode", "accuracy"});
//   table.AddRow({"sync", "98.6 %"});
//   std::cout << table.Format();
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) { rows_.push_back(std::move(header)); }

  // Missing cells are empty.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Every column is aligned to the left: for tables of words.
  void AlignLeft() { left_ = true; }
  // With a newline at the end of each line; no spaces before it.
  std::string Format() const;

 private:
  bool left_ = false;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_TEXT_TABLE_H_
