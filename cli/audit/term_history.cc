#include "cli/audit/term_history.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rubato {

void TermHistory::Begin(uint64_t term) {
  ++terms_;
  term_ = term;
  has_plan_ = false;
  before_ = now_;
  report_->terms.push_back({.term = term});
  if (restored() && before_.torn) {
    report_->notes.push_back(absl::StrCat("logs of terms before ", term,
                                          " have lost their ends, so that the beginning of ", "term ", term,
                                          " cannot be compared with what they reached"));
  }
}

void TermHistory::OnPlan(const std::string& where, const v1::Plan& plan) {
  TermReport& term = report_->terms.back();
  term.first_step = has_plan_ ? std::min(term.first_step, plan.first_step()) : plan.first_step();
  has_plan_ = true;
  now_.generation = std::max(now_.generation, plan.generation());
  now_.step = std::max(now_.step, plan.first_step());
  if (!restored()) return;
  if (plan.generation() <= before_.generation) {
    report_->Break(Invariant::kPlans, [&] {
      return absl::StrCat(where, ": plan ", plan.generation(), ", although terms before had plan ", before_.generation);
    });
  }
}

void TermHistory::OnLog(const std::string& where, const LogAudit& log, bool torn) {
  now_.torn = now_.torn || torn;
  now_.step = std::max(now_.step, log.highest_step() + 1);
  TermReport& term = report_->terms.back();
  ++term.logs;
  term.last_step = std::max(term.last_step, log.highest_step());
  for (uint32_t index : log.chunks()) {
    const ChunkAudit& chunk = log.chunk(index);
    const auto had = before_.versions.find(index);
    if (restored() && !before_.torn && had != before_.versions.end() && chunk.first_version() > had->second) {
      report_->Break(Invariant::kOnce, [&] {
        return absl::StrCat(where, ", chunk ", index, ": begins with version ", chunk.first_version(),
                            ", although it had come to ", had->second, " in the terms before");
      });
    }
    int64_t& version = now_.versions[index];
    version = std::max(version, chunk.version());
  }
}

void TermHistory::End() {
  const TermReport& term = report_->terms.back();
  if (!restored() || before_.torn || term.first_step <= before_.step) return;
  report_->Break(Invariant::kPlans, [&] {
    return absl::StrCat("term ", term.term, " begins with step ", term.first_step,
                        ", although the terms before reached step ", before_.step);
  });
}

}  // namespace rubato
