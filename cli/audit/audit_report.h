#ifndef RUBATO_CLI_AUDIT_AUDIT_REPORT_H_
#define RUBATO_CLI_AUDIT_AUDIT_REPORT_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rubato {

// What update logs can prove (docs/architecture.md).
enum class Invariant {
  // I1: per SYNC step and chunk one update, with each member's contribution once.
  kSync,
  // I2: nobody computed a step from weights that lacked a member's steps beyond the staleness bound.
  kStaleness,
  // I3: no push is applied twice, and no update of a chunk is missing.
  kOnce,
  // I5: a plan change neither loses nor repeats a step; generations and steps only grow.
  kPlans,
  // I8: no example was trained twice.
  kExamples,
};

struct InvariantReport {
  // Records (I1: updates) that the invariant says something about.
  int64_t checked = 0;
  int64_t violations = 0;
  // The first violation, in words.
  std::string counterexample;

  bool held() const { return violations == 0; }
};

// Over the updates of one mode, as in "SSP(2)".
struct StalenessReport {
  int64_t pushes = 0;
  // A pushed step minus the slowest member's clock when its weights were handed out.
  int64_t clock_staleness_max = 0;
  // Versions between the one that a push was computed from and the one that it was applied to.
  int64_t version_staleness_max = 0;
};

// What the job did from its beginning, or from a checkpoint that it went back to, up to the next time that it did.
struct TermReport {
  uint64_t term = 1;
  int64_t logs = 0;
  int64_t pushes = 0;
  // Of the first plan.
  int64_t first_step = 0;
  // Of all pushes; -1 for none.
  int64_t last_step = -1;
  // Of any invariant.
  int64_t violations = 0;
};

// What was trained along the history that the job ended with, in examples; 0 if the plans said which are whose.
struct ExamplesReport {
  // In some chunk.
  int64_t trained = 0;
  // In the chunks that have the least and the most of them. One lacks what was lost with a worker in the middle of a
  // step, and what a log lost with its server.
  int64_t chunk_least = 0;
  int64_t chunk_most = 0;
};

// The result of an audit. Plain data.
struct AuditReport {
  static constexpr int kInvariants = 5;

  std::array<InvariantReport, kInvariants> invariants;
  // By mode name.
  std::map<std::string, StalenessReport> staleness;
  ExamplesReport examples;
  int64_t logs = 0;
  int64_t chunks = 0;
  int64_t plans = 0;
  int64_t pushes = 0;
  // Ascending. One, of term 1, unless the job went back to a checkpoint.
  std::vector<TermReport> terms;
  // What the reader should know besides: a torn log, a missing one.
  std::vector<std::string> notes;

  bool held() const;
  // Of all invariants.
  int64_t violations() const;

  InvariantReport& of(Invariant invariant) { return invariants[static_cast<int>(invariant)]; }
  const InvariantReport& of(Invariant invariant) const { return invariants[static_cast<int>(invariant)]; }

  void Check(Invariant invariant) { ++of(invariant).checked; }
  // `describe` makes the text of a first counterexample; it is not called for later ones.
  template <typename Describe>
  void Break(Invariant invariant, Describe describe) {
    InvariantReport& report = of(invariant);
    if (report.violations++ == 0) report.counterexample = describe();
  }
};

// "I1".
std::string InvariantId(Invariant invariant);

// Several lines for a person; the first says whether everything held.
std::string FormatAudit(const AuditReport& report);

// The same as one line of JSON: {"held":..,"invariants":[{"id":"I1","statement":..,"held":..,"checked":..,
// "violations":..,"counterexample":..}],"staleness":[{"mode":..,"pushes":..,"clock_staleness_max":..,
// "version_staleness_max":..}],"examples":{"trained":..,"chunk_least":..,"chunk_most":..},"logs":..,"chunks":..,"plans":..,"pushes":..,"terms":[{"term":..,"logs":..,"pushes":..,
// "first_step":..,"last_step":..,"violations":..}],"notes":[..]}
std::string AuditJson(const AuditReport& report);

}  // namespace rubato

#endif  // RUBATO_CLI_AUDIT_AUDIT_REPORT_H_
