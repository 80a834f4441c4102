#include "cli/audit/audit_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace rubato {
namespace {

struct Described {
  Invariant invariant;
  const char* id;
  const char* statement;
};

constexpr Described kDescribed[] = {
    {Invariant::kSync, "I1", "one SYNC update per step and chunk, each member counted once"},
    {Invariant::kStaleness, "I2", "no step was computed beyond its staleness bound"},
    {Invariant::kOnce, "I3", "no push was applied twice, no update is missing"},
    {Invariant::kPlans, "I5", "plan changes neither lost nor repeated a step"},
    {Invariant::kExamples, "I8", "no example was trained twice"},
};

}  // namespace

bool AuditReport::held() const {
  return std::all_of(invariants.begin(), invariants.end(), [](const InvariantReport& r) { return r.held(); });
}

int64_t AuditReport::violations() const {
  int64_t violations = 0;
  for (const InvariantReport& invariant : invariants) violations += invariant.violations;
  return violations;
}

std::string InvariantId(Invariant invariant) { return kDescribed[static_cast<int>(invariant)].id; }

std::string FormatAudit(const AuditReport& report) {
  std::string text =
      absl::StrCat(report.held() ? "All invariants held" : "INVARIANTS BROKEN", ": ", report.pushes, " pushes to ",
                   report.chunks, " chunks under ", report.plans, " plans, in ", report.logs, " logs\n");
  for (const Described& described : kDescribed) {
    const InvariantReport& result = report.of(described.invariant);
    absl::StrAppend(&text, "  ", described.id, "  ", result.held() ? "held  " : "BROKEN", "  ", described.statement,
                    " (", result.checked, " checked");
    if (!result.held()) absl::StrAppend(&text, ", ", result.violations, " broken");
    absl::StrAppend(&text, ")\n");
    if (!result.held()) absl::StrAppend(&text, "              first: ", result.counterexample, "\n");
  }
  for (const auto& [mode, staleness] : report.staleness) {
    if (staleness.pushes == 0) continue;
    absl::StrAppend(&text, "  ", mode, ": ", staleness.pushes, " pushes, largest clock staleness ",
                    staleness.clock_staleness_max, " steps, largest version staleness ",
                    staleness.version_staleness_max, " updates\n");
  }
  if (const ExamplesReport& examples = report.examples; examples.trained > 0) {
    absl::StrAppend(&text, "  ", examples.trained, " examples were trained");
    if (examples.chunk_least < examples.trained) {
      absl::StrAppend(&text, ", in single chunks ", examples.chunk_least, " to ", examples.chunk_most);
    }
    absl::StrAppend(&text, "\n");
  }
  for (const TermReport& term : report.terms) {
    if (report.terms.size() == 1) break;
    const std::string result = term.violations == 0 ? "held" : absl::StrCat("BROKEN ", term.violations, " times");
    absl::StrAppend(&text, "  term ", term.term, ": ", term.pushes, " pushes in ", term.logs, " logs ", result,
                    ", from step ", term.first_step,
                    term.last_step < 0 ? std::string() : absl::StrCat(" to step ", term.last_step), "\n");
  }
  for (const std::string& note : report.notes) absl::StrAppend(&text, "  note: ", note, "\n");
  return text;
}

std::string AuditJson(const AuditReport& report) {
  nlohmann::ordered_json json;
  json["held"] = report.held();
  json["invariants"] = nlohmann::ordered_json::array();
  for (const Described& described : kDescribed) {
    const InvariantReport& result = report.of(described.invariant);
    json["invariants"].push_back({{"id", described.id},
                                  {"statement", described.statement},
                                  {"held", result.held()},
                                  {"checked", result.checked},
                                  {"violations", result.violations},
                                  {"counterexample", result.counterexample}});
  }
  json["staleness"] = nlohmann::ordered_json::array();
  for (const auto& [mode, staleness] : report.staleness) {
    json["staleness"].push_back({{"mode", mode},
                                 {"pushes", staleness.pushes},
                                 {"clock_staleness_max", staleness.clock_staleness_max},
                                 {"version_staleness_max", staleness.version_staleness_max}});
  }
  json["examples"] = {{"trained", report.examples.trained},
                      {"chunk_least", report.examples.chunk_least},
                      {"chunk_most", report.examples.chunk_most}};
  json["logs"] = report.logs;
  json["chunks"] = report.chunks;
  json["plans"] = report.plans;
  json["pushes"] = report.pushes;
  json["terms"] = nlohmann::ordered_json::array();
  for (const TermReport& term : report.terms) {
    json["terms"].push_back({{"term", term.term},
                             {"logs", term.logs},
                             {"pushes", term.pushes},
                             {"first_step", term.first_step},
                             {"last_step", term.last_step},
                             {"violations", term.violations}});
  }
  json["notes"] = report.notes;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace rubato
