#include "cli/report/html_report.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/report/page_parts.inc"

namespace rubato {
namespace {

using Json = nlohmann::json;

// More points than this per curve cannot be told apart on a screen.
constexpr size_t kPointsMax = 1500;

Json OrNull(const std::optional<double>& value) { return value.has_value() ? Json(*value) : Json(nullptr); }

std::string PlanModeName(const PlanLine& plan) {
  return plan.mode == "SSP" ? absl::StrCat("SSP(", plan.staleness_bound, ")") : plan.mode;
}

// Plans that changed the mode, without the first one.
std::vector<PlanLine> Switches(const RunRecord& record) {
  std::vector<PlanLine> switches;
  for (size_t i = 0; i < record.plans.size(); ++i) {
    const PlanLine& plan = record.plans[i];
    if (plan.generation <= 1) continue;
    bool same = i > 0 && PlanModeName(record.plans[i - 1]) == PlanModeName(plan);
    if (!same) switches.push_back(plan);
  }
  return switches;
}

Json SummaryData(const RunSummary& summary) {
  return {{"seconds_to_target", OrNull(summary.seconds_to_target)},
          {"examples_per_second", summary.examples_per_second}};
}

Json RunData(const ComparedRun& run) {
  Json evaluations = Json::array();
  for (const EvaluationLine& line : run.record.evaluations) {
    evaluations.push_back({line.t, line.epoch, line.step, OrNull(line.loss), OrNull(line.accuracy)});
  }
  const std::vector<ProgressLine>& lines = run.record.progress;
  size_t stride = lines.size() / kPointsMax + 1;
  Json progress = Json::array();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i % stride != 0 && i + 1 != lines.size()) continue;
    const ProgressLine& line = lines[i];
    progress.push_back(
        {line.t, line.epoch, line.step, OrNull(line.loss), OrNull(line.accuracy), line.examples_per_second});
  }
  Json workers = Json::array();
  Json staleness = Json::array();
  if (!lines.empty()) {
    staleness = lines.back().staleness_counts;
    for (const WorkerTotals& worker : lines.back().workers) {
      workers.push_back(
          {worker.index, worker.data_seconds, worker.compute_seconds, worker.push_seconds, worker.pull_wait_seconds});
    }
  }
  Json switches = Json::array();
  for (const PlanLine& plan : Switches(run.record)) switches.push_back({{"t", plan.t}, {"mode", PlanModeName(plan)}});
  return {{"evaluations", evaluations}, {"progress", progress}, {"workers", workers},
          {"staleness", staleness},     {"switches", switches}, {"summary", SummaryData(run.summary)}};
}

// JSON that may stand inside a script element.
std::string PageData(const Comparison& comparison) {
  Json modes = Json::array();
  for (const ComparedMode& mode : comparison.modes) {
    Json runs = Json::array();
    for (const ComparedRun& run : mode.runs) runs.push_back(RunData(run));
    modes.push_back({{"name", mode.name}, {"mean", SummaryData(MeanOfMode(mode))}, {"runs", runs}});
  }
  Json data = {{"target_accuracy", comparison.target_accuracy}, {"modes", modes}};
  return absl::StrReplaceAll(data.dump(-1, ' ', false, Json::error_handler_t::replace), {{"<", "\\u003c"}});
}

const StartLine* FirstStart(const Comparison& comparison) {
  for (const ComparedMode& mode : comparison.modes) {
    for (const ComparedRun& run : mode.runs) {
      if (run.record.start.has_value()) return &*run.record.start;
    }
  }
  return nullptr;
}

std::string Plural(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string Facts(const Comparison& comparison) {
  std::vector<std::string> facts;
  if (const StartLine* start = FirstStart(comparison); start != nullptr) {
    facts.push_back(Plural(start->workers, "worker"));
    facts.push_back(Plural(start->servers, "server"));
    facts.push_back(absl::StrCat("batches of ", start->batch_size));
    facts.push_back(absl::StrCat(start->train_examples, " training examples"));
  }
  size_t runs = 0;
  for (const ComparedMode& mode : comparison.modes) runs += mode.runs.size();
  facts.push_back(Plural(static_cast<int64_t>(runs), "run"));
  if (!comparison.slowed.empty()) facts.push_back(absl::StrCat("slowed on purpose: ", comparison.slowed));
  return EscapeHtml(absl::StrJoin(facts, " · "));
}

std::string Card(absl::string_view label, absl::string_view value, absl::string_view detail) {
  return absl::StrCat("<div class=\"card\"><div class=\"label\">", EscapeHtml(label), "</div><div class=\"value\">",
                      EscapeHtml(value), "</div><div class=\"detail\">", EscapeHtml(detail), "</div></div>\n");
}

// The mode with the best value of a measure; null when no mode has it.
template <typename Better>
const ComparedMode* Best(const Comparison& comparison, std::optional<double> (*measure)(const RunSummary&),
                         Better better) {
  const ComparedMode* best = nullptr;
  std::optional<double> best_value;
  for (const ComparedMode& mode : comparison.modes) {
    std::optional<double> value = measure(MeanOfMode(mode));
    if (!value.has_value() || (best != nullptr && !better(*value, *best_value))) continue;
    best = &mode;
    best_value = value;
  }
  return best;
}

std::string Cards(const Comparison& comparison) {
  std::string cards;
  auto less = [](double a, double b) { return a < b; };
  auto more = [](double a, double b) { return a > b; };
  auto to_target = [](const RunSummary& run) { return run.seconds_to_target; };
  auto accuracy = [](const RunSummary& run) { return run.final_accuracy; };
  auto speed = [](const RunSummary& run) { return std::optional<double>(run.examples_per_second); };
  if (comparison.target_accuracy > 0) {
    std::string label = absl::StrFormat("Fastest to %.4g %% accuracy", comparison.target_accuracy * 100);
    if (const ComparedMode* mode = Best(comparison, +to_target, less); mode != nullptr) {
      absl::StrAppend(&cards, Card(label, absl::StrFormat("%.1f s", *MeanOfMode(*mode).seconds_to_target), mode->name));
    } else {
      absl::StrAppend(&cards, Card(label, "not reached", "by all runs of any mode"));
    }
  }
  if (const ComparedMode* mode = Best(comparison, +accuracy, more); mode != nullptr) {
    double value = *MeanOfMode(*mode).final_accuracy * 100;
    absl::StrAppend(&cards, Card("Highest final accuracy", absl::StrFormat("%.2f %%", value), mode->name));
  }
  if (const ComparedMode* mode = Best(comparison, +speed, more); mode != nullptr) {
    double value = MeanOfMode(*mode).examples_per_second;
    absl::StrAppend(&cards, Card("Highest throughput", absl::StrFormat("%.0f examples/s", value), mode->name));
  }
  return cards;
}

std::string Cell(absl::string_view text) { return absl::StrCat("<td>", EscapeHtml(text), "</td>"); }

std::string Tag(bool ok, AuditResult audit) {
  if (!ok) return "<td><span class=\"tag bad\">failed</span></td>";
  absl::string_view style = audit == AuditResult::kHeld ? "good" : audit == AuditResult::kBroken ? "bad" : "none";
  return absl::StrCat("<td><span class=\"tag ", style, "\">", AuditResultName(audit), "</span></td>");
}

std::string NumberCells(const RunSummary& run, bool target) {
  auto percent = [](const std::optional<double>& v) { return v ? absl::StrFormat("%.2f %%", *v * 100) : "–"; };
  std::string cells = Cell(percent(run.final_accuracy));
  absl::StrAppend(&cells, Cell(run.final_loss ? absl::StrFormat("%.4f", *run.final_loss) : "–"));
  if (target) {
    std::string seconds = run.seconds_to_target ? absl::StrFormat("%.1f s", *run.seconds_to_target) : "not reached";
    absl::StrAppend(&cells, Cell(seconds));
  }
  absl::StrAppend(&cells, Cell(absl::StrFormat("%.0f", run.examples_per_second)),
                  Cell(absl::StrFormat("%.1f s", run.seconds)), Cell(absl::StrFormat("%.2f", run.staleness_mean)),
                  Cell(absl::StrCat(run.staleness_max)), Cell(absl::StrFormat("%.1f %%", run.waiting_share * 100)),
                  Cell(absl::StrFormat("%.1f MB", run.pushed_bytes * 1e-6)),
                  Cell(absl::StrFormat("%.1f MB", run.pulled_bytes * 1e-6)));
  return cells;
}

std::string ResultTable(const Comparison& comparison) {
  bool target = comparison.target_accuracy > 0;
  std::string table =
      absl::StrCat("<table><thead><tr><th>mode</th><th>accuracy</th><th>loss</th>", target ? "<th>to target</th>" : "",
                   "<th>examples/s</th><th>whole run</th><th>staleness</th><th>largest</th><th>waiting</th>"
                   "<th>pushed</th><th>pulled</th>"
                   "<th>audit</th></tr></thead><tbody>\n");
  for (size_t i = 0; i < comparison.modes.size(); ++i) {
    const ComparedMode& mode = comparison.modes[i];
    RunSummary mean = MeanOfMode(mode);
    absl::StrAppend(&table, "<tr><td><span class=\"swatch\" style=\"background:var(--s", i % 6, ")\"></span>",
                    EscapeHtml(mode.name), "</td>", NumberCells(mean, target), Tag(mean.ok, AuditOfMode(mode)),
                    "</tr>\n");
    for (const ComparedRun& run : mode.runs) {
      if (mode.runs.size() == 1) break;
      absl::StrAppend(&table, "<tr class=\"seed\"><td>seed ", run.seed, "</td>", NumberCells(run.summary, target),
                      Tag(run.summary.ok, run.audit), "</tr>\n");
    }
  }
  return absl::StrCat(table, "</tbody></table>\n");
}

std::string RunName(const ComparedMode& mode, const ComparedRun& run) {
  return mode.runs.size() > 1 ? absl::StrCat(mode.name, ", seed ", run.seed) : mode.name;
}

std::string Milliseconds(double seconds) { return absl::StrFormat("%.1f ms", seconds * 1000); }

// A card with a table of words, or nothing when it has no rows.
std::string WordTable(absl::string_view title, absl::string_view header, const std::string& rows) {
  if (rows.empty()) return "";
  return absl::StrCat("<section class=\"card wide\"><div class=\"head\"><h2>", title,
                      "</h2></div><div class=\"scroll\"><table class=\"words\"><thead><tr>", header,
                      "</tr></thead><tbody>\n", rows, "</tbody></table></div></section>\n");
}

std::string SwitchTable(const Comparison& comparison) {
  std::string rows;
  for (const ComparedMode& mode : comparison.modes) {
    for (const ComparedRun& run : mode.runs) {
      for (const PlanLine& plan : Switches(run.record)) {
        absl::StrAppend(&rows, "<tr>", Cell(RunName(mode, run)), Cell(absl::StrFormat("%.1f s", plan.t)),
                        Cell(PlanModeName(plan)), Cell(absl::StrCat(plan.first_step)), Cell(plan.reason));
        absl::StrAppend(&rows, Cell(Milliseconds(plan.round_trip_seconds)), Cell(Milliseconds(plan.stall_seconds)),
                        Cell(Milliseconds(plan.slowest_step_seconds)), "</tr>\n");
      }
    }
  }
  return WordTable("Mode changes",
                   "<th>run</th><th>at</th><th>to</th><th>first step</th><th>asked for by</th><th>round trip</th>"
                   "<th>longest stall</th><th>slowest worker's step</th>",
                   rows);
}

std::string EventTable(const Comparison& comparison) {
  std::string rows;
  for (const ComparedMode& mode : comparison.modes) {
    for (const std::string& skipped : SkippedSteps(mode)) {
      absl::StrAppend(&rows, "<tr>", Cell(mode.name), Cell(""), Cell("skipped"), "<td class=\"reason\">", skipped,
                      "</td></tr>\n");
    }
    for (const ComparedRun& run : mode.runs) {
      for (const MemberLine& line : run.record.members) {
        if (line.event != "evicted") continue;
        absl::StrAppend(&rows, "<tr>", Cell(RunName(mode, run)), Cell(absl::StrFormat("%.1f s", line.t)),
                        Cell(absl::StrCat(line.task, " evicted")), "<td class=\"reason\">", EscapeHtml(line.reason),
                        "</td></tr>\n");
      }
      if (run.summary.ok) continue;
      absl::StrAppend(&rows, "<tr>", Cell(RunName(mode, run)), Cell(absl::StrFormat("%.1f s", run.summary.seconds)),
                      Cell("job failed"), "<td class=\"reason\">", EscapeHtml(run.summary.error), "</td></tr>\n");
    }
  }
  return WordTable("What went wrong", "<th>run</th><th>at</th><th>event</th><th>reason</th>", rows);
}

std::string ChartCard(absl::string_view title, absl::string_view id) {
  return absl::StrCat("<section class=\"card\"><div class=\"head\"><h2>", title,
                      "</h2></div><div class=\"chart\" id=\"", id, "\"></div></section>\n");
}

std::string Charts(bool target) {
  return absl::StrCat(
      "<section class=\"card wide\"><div class=\"head\"><h2>Curves</h2><div class=\"legend\" id=\"modes-legend\"></div>"
      "<div class=\"toggle\" id=\"axis\" role=\"group\" aria-label=\"Horizontal axis\"></div></div>"
      "<p class=\"hint\">Where a mode has several seeds: their mean, and a band from the lowest to the highest."
      "</p></section>\n<div class=\"pair\">\n",
      ChartCard("Held-out accuracy", "accuracy"), ChartCard("Held-out loss", "heldout-loss"),
      ChartCard("Training loss", "loss"), ChartCard("Examples per second", "speed"), "</div>\n<div class=\"pair\">\n",
      target ? ChartCard("Time to target accuracy", "to-target") : "", ChartCard("Throughput", "throughput"),
      ChartCard("Staleness of pushes, share of steps", "staleness"),
      "<section class=\"card\"><div class=\"head\"><h2>Where each worker's time went</h2>"
      "<div class=\"legend\" id=\"time-legend\"></div></div><div class=\"chart\" "
      "id=\"time\"></div></section>\n</div>\n");
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string HtmlReport(const Comparison& comparison) {
  std::string title = EscapeHtml(comparison.job);
  std::string note = comparison.generated_data
                         ? "<p class=\"note\">The examples of these runs were generated, not real data.</p>\n"
                         : "";
  std::string config = comparison.config_text.empty()
                           ? ""
                           : absl::StrCat("<details><summary>The job's config</summary><pre>",
                                          EscapeHtml(comparison.config_text), "</pre></details>\n");
  return absl::StrCat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>",
      title, " – Rubato</title><style>\n", kStyle, "</style></head>\n<body><main>\n<header><h1>", title,
      "</h1><span class=\"brand\">Rubato run report</span></header>\n<p class=\"facts\">", Facts(comparison), "</p>\n",
      note, "<div class=\"cards\">\n", Cards(comparison), "</div>\n<section class=\"card wide\"><div class=\"scroll\">",
      ResultTable(comparison), "</div></section>\n",
      "<noscript><p class=\"note\">The charts need JavaScript; the tables do not.</p></noscript>\n",
      Charts(comparison.target_accuracy > 0), SwitchTable(comparison), EventTable(comparison), config,
      "</main>\n<script type=\"application/json\" id=\"data\">", PageData(comparison), "</script>\n<script>\n",
      kChartsScript, "</script>\n<script>\n", kPageScript, "</script>\n</body></html>\n");
}

}  // namespace rubato
