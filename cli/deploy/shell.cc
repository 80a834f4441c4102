#include "cli/deploy/shell.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace rubato {

std::string ShellQuote(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string ShellCommand(const std::vector<std::string>& words) {
  return absl::StrJoin(words, " ",
                       [](std::string* out, const std::string& word) { absl::StrAppend(out, ShellQuote(word)); });
}

std::string ShellAssignments(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::string text;
  for (const auto& [name, value] : variables) absl::StrAppend(&text, name, "=", ShellQuote(value), "\n");
  return text;
}

std::string RemoteCommand(absl::string_view script, absl::string_view environment) {
  return absl::StrCat("env ", environment, environment.empty() ? "" : " ", "sh -c 'eval \"$(echo ",
                      absl::Base64Escape(script), " | base64 -d)\"'");
}

}  // namespace rubato
