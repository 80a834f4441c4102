#include "common/limits/refusal_log.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace rubato {

RefusalLog::Told* RefusalLog::Find(std::pair<std::string, std::string> key, absl::Time now) {
  if (const auto found = told_.find(key); found != told_.end()) return &found->second;
  if (told_.size() >= kMost) {
    for (auto next = told_.begin(); next != told_.end();) {
      next = now - next->second.when >= kPause ? told_.erase(next) : std::next(next);
    }
  }
  return told_.size() < kMost ? &told_[std::move(key)] : nullptr;
}

void RefusalLog::Note(absl::string_view peer, absl::string_view kind, absl::string_view why) {
  const absl::Time now = clock_->Now();
  std::string line;
  {
    MutexLock lock(mu_);
    Told* told = Find({std::string(peer.substr(0, kReasonBytes)), std::string(kind)}, now);
    const bool is_other = told == nullptr;
    if (is_other) told = &others_;
    if (now - told->when < kPause) {
      ++told->since;
      return;
    }
    line = absl::StrCat("refused: ", absl::Utf8SafeCHexEscape(why.substr(0, kReasonBytes)), " (from ",
                        absl::Utf8SafeCHexEscape(peer.substr(0, kReasonBytes)), ")");
    if (is_other) absl::StrAppend(&line, "; so many others are refused that those to come are not named");
    if (told->since > 0) absl::StrAppend(&line, "; ", told->since, " more since this was last said");
    *told = {.when = now, .since = 0};
  }
  log_->Warning(line);
}

}  // namespace rubato
