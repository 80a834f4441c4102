#include "cli/report/baseline_table.h"

#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/report/against_baseline.h"
#include "cli/report/text_table.h"

namespace rubato {
namespace {

bool IsShare(const Quantity& quantity) { return absl::EndsWith(quantity.name, "accuracy"); }

std::string Value(const Quantity& quantity, double value) {
  if (quantity.is_ratio) return absl::StrFormat("x%.3f", value);
  return IsShare(quantity) ? absl::StrFormat("%+.2f", value * 100) : absl::StrFormat("%+.4f", value);
}

std::string Unit(const Quantity& quantity) { return IsShare(quantity) ? " points" : ""; }

std::string P(const BaselineResult& result) {
  if (!result.p_holm.has_value() || !result.can_tell) return "-";
  return *result.p_holm < 0.001 ? "< 0.001" : absl::StrFormat("%.3f", *result.p_holm);
}

std::vector<std::string> Row(const BaselineResult& result) {
  const Quantity& quantity = result.quantity;
  std::string estimate = "-", interval = "-";
  if (result.estimate.has_value()) estimate = absl::StrCat(Value(quantity, *result.estimate), Unit(quantity));
  if (result.interval.has_value()) {
    interval = absl::StrCat(Value(quantity, result.interval->low), " to ", Value(quantity, result.interval->high));
  }
  return {result.mode, quantity.label, estimate, interval, P(result), absl::StrCat(result.pairs)};
}

}  // namespace

std::string FormatBaselineTable(const Comparison& comparison) {
  const std::optional<AgainstBaseline> against = CompareWithBaseline(comparison);
  if (!against.has_value()) return "";
  std::string text = absl::StrCat("Against ", against->baseline, ", run by run with the same seed:\n");
  if (!against->results.empty()) {
    TextTable table({"mode", "quantity", "difference", "95 % interval", "p (Holm)", "pairs"});
    for (const BaselineResult& result : against->results) table.AddRow(Row(result));
    absl::StrAppend(&text, table.Format());
  }
  for (const std::string& note : NotesOn(*against)) absl::StrAppend(&text, note, "\n");
  return text + "\n";
}

}  // namespace rubato
