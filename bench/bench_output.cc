#include "bench/bench_output.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rubato::bench {
namespace {

// Whole numbers in full, others with five significant digits.
std::string NumberText(double value) {
  if (value == std::round(value) && std::abs(value) < 1e15) return absl::StrFormat("%.0f", value);
  return absl::StrFormat("%.5g", value);
}

std::string JsonString(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

std::string CasesTable(const std::vector<BenchCase>& cases) {
  if (cases.empty()) return "";
  std::vector<std::vector<std::string>> rows(1);
  rows[0].push_back("case");
  for (const auto& [name, value] : cases[0].values) rows[0].push_back(name);
  for (const BenchCase& bench_case : cases) {
    rows.push_back({bench_case.name});
    for (const auto& [name, value] : bench_case.values) rows.back().push_back(NumberText(value));
  }
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (const std::vector<std::string>& row : rows) {
    absl::StrAppendFormat(&table, "%-*s", static_cast<int>(widths[0]), row[0]);
    for (size_t i = 1; i < row.size(); ++i) absl::StrAppendFormat(&table, "  %*s", static_cast<int>(widths[i]), row[i]);
    table += '\n';
  }
  return table;
}

std::string CaseJson(const BenchCase& bench_case) {
  std::string json = absl::StrCat("{\"name\":", JsonString(bench_case.name));
  for (const auto& [name, value] : bench_case.values) {
    const std::string number = std::isfinite(value) ? absl::StrFormat("%.9g", value) : "null";
    absl::StrAppend(&json, ",", JsonString(name), ":", number);
  }
  return json + "}";
}

void PrintCases(const std::vector<BenchCase>& cases) {
  std::fputs(CasesTable(cases).c_str(), stdout);
  for (const BenchCase& bench_case : cases) std::printf("%s\n", CaseJson(bench_case).c_str());
  std::fflush(stdout);
}

double Median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace rubato::bench
