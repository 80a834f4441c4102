#include "cli/command/variant_choice.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/config/awaited_model.h"
#include "common/config/fingerprint.h"
#include "common/config/load.h"
#include "common/status.h"

namespace rubato {
namespace {

constexpr size_t kNameMax = 64;

bool IsName(absl::string_view text) {
  const auto allowed = [](char c) { return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-'; };
  return !text.empty() && text.size() <= kNameMax && absl::ascii_isalnum(text.front()) &&
         std::all_of(text.begin(), text.end(), allowed);
}

absl::StatusOr<VariantChoice> ParseVariant(const std::string& text, const std::string& option) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  VariantChoice variant = {.name = std::string(absl::StripAsciiWhitespace(parts.first))};
  for (absl::string_view part : absl::StrSplit(parts.second, ';')) {
    part = absl::StripAsciiWhitespace(part);
    if (!part.empty()) variant.overrides.emplace_back(part);
  }
  if (IsName(variant.name) && !variant.overrides.empty()) return variant;
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": value \"", text,
                   "\"; allowed: NAME: PATH=VALUE; PATH=VALUE.., with a name of 1 to 64 letters, digits and . _ -"));
}

}  // namespace

absl::StatusOr<std::vector<VariantChoice>> ParseVariants(const std::vector<std::string>& texts,
                                                         const std::vector<std::string>& taken,
                                                         const std::string& option) {
  std::set<std::string> names(taken.begin(), taken.end());
  std::vector<VariantChoice> variants;
  for (const std::string& text : texts) {
    RUBATO_ASSIGN_OR_RETURN(VariantChoice variant, ParseVariant(text, option));
    if (!names.insert(variant.name).second) {
      return absl::InvalidArgumentError(absl::StrCat(option, ": ", variant.name, " is given twice"));
    }
    variants.push_back(std::move(variant));
  }
  return variants;
}

absl::StatusOr<v1::JobConfig> ConfigOfVariant(const v1::JobConfig& config, const VariantChoice& variant) {
  const std::string where = absl::StrCat("variant ", variant.name);
  absl::StatusOr<v1::JobConfig> changed =
      ParseJobConfig(ConfigText(config), where, variant.overrides, {.may_await_model = AwaitsModel(config)});
  if (!changed.ok()) return Annotate(changed.status(), where);
  for (const auto& [field, differs] :
       {std::pair("name", changed->name() != config.name()), std::pair("seed", changed->seed() != config.seed()),
        std::pair("run_directory", changed->run_directory() != config.run_directory())}) {
    if (differs) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": ", field, ": is changed; allowed: the same for all that is compared"));
    }
  }
  return changed;
}

}  // namespace rubato
