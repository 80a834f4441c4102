#include "common/straggler/straggler_model.h"

#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace rubato {
namespace {

using Values = std::vector<absl::string_view>;

constexpr char kTrace[] = "trace=";

// A NaN is in no range.
bool ReadNumber(absl::string_view text, double low, double high, double* number) {
  return absl::SimpleAtod(text, number) && *number >= low && *number <= high;
}

bool ReadFactor(absl::string_view text, double* factor) {
  return absl::ConsumePrefix(&text, "x") && ReadNumber(text, 1, 1000, factor);
}

bool ReadTime(absl::string_view text, absl::Duration* time) {
  return absl::ParseDuration(text, time) && *time >= absl::ZeroDuration() && *time <= absl::Minutes(10);
}

bool ReadProbability(absl::string_view text, double* probability) { return ReadNumber(text, 1e-6, 1, probability); }

bool ReadVariation(absl::string_view text, double* variation) { return ReadNumber(text, 0.001, 10, variation); }

bool ReadLength(absl::string_view text, int64_t* steps) {
  return absl::SimpleAtoi(text, steps) && *steps >= 1 && *steps <= 1'000'000;
}

bool ReadMarkov(const Values& values, StragglerModel::Markov* markov) {
  return values.size() == 4 && ReadFactor(values[0], &markov->factor) &&
         ReadProbability(values[1], &markov->probability) && ReadLength(values[2], &markov->shortest) &&
         ReadLength(values[3], &markov->longest) && markov->shortest <= markov->longest;
}

// A kind of term but for the factor and the trace. (Clang 14 does not find the default constructors of StragglerModel's
// structs where an optional is in the same class.)
struct Kind {
  absl::string_view name;
  const char* allowed;
  bool (*read)(const Values& values, StragglerModel* model);
};

constexpr std::array<Kind, 8> kKinds = {{
    {"sleep", "sleep=TIME, a time of 0 to 10m, as in sleep=30ms",
     [](const Values& v, StragglerModel* model) { return v.size() == 1 && ReadTime(v[0], &model->sleep.emplace()); }},
    {"exp", "exp=MEAN, a time of 0 to 10m, as in exp=10ms",
     [](const Values& v, StragglerModel* model) {
       return v.size() == 1 && ReadTime(v[0], &model->exponential_mean.emplace());
     }},
    {"pareto", "pareto=SCALE,SHAPE, a time of 0 to 10m and 0.1 to 100, as in pareto=10ms,1.5",
     [](const Values& v, StragglerModel* model) {
       auto& pareto = model->pareto.emplace(StragglerModel::Pareto());
       return v.size() == 2 && ReadTime(v[0], &pareto.scale) && ReadNumber(v[1], 0.1, 100, &pareto.shape);
     }},
    {"gamma", "gamma=MEAN,VARIATION, a time of 0 to 10m and 0.001 to 10, as in gamma=30ms,0.1",
     [](const Values& v, StragglerModel* model) {
       auto& gamma = model->gamma.emplace(StragglerModel::Gamma());
       return v.size() == 2 && ReadTime(v[0], &gamma.mean) && ReadVariation(v[1], &gamma.variation);
     }},
    {"spread", "spread=VARIATION, 0.001 to 10, as in spread=0.6",
     [](const Values& v, StragglerModel* model) {
       return v.size() == 1 && ReadVariation(v[0], &model->spread.emplace());
     }},
    {"bimodal", "bimodal=xFACTOR,PROBABILITY, x1 to x1000 and 0.000001 to 1, as in bimodal=x6,0.125",
     [](const Values& v, StragglerModel* model) {
       auto& bimodal = model->bimodal.emplace(StragglerModel::Bimodal());
       return v.size() == 2 && ReadFactor(v[0], &bimodal.factor) && ReadProbability(v[1], &bimodal.probability);
     }},
    {"markov",
     "markov=xFACTOR,PROBABILITY,SHORTEST,LONGEST, x1 to x1000, 0.000001 to 1 and 1 to 1000000 steps, as in "
     "markov=x4,0.02,10,200",
     [](const Values& v, StragglerModel* model) {
       return ReadMarkov(v, &model->markov.emplace(StragglerModel::Markov()));
     }},
    {"rank", "rank or rank=sqrt",
     [](const Values& v, StragglerModel* model) {
       const bool linear = v.empty();
       model->rank = linear ? StragglerModel::Rank::kLinear : StragglerModel::Rank::kSquareRoot;
       return linear || v == Values{"sqrt"};
     }},
}};

std::string KnownTerms() {
  return absl::StrCat(
      "xFACTOR, ",
      absl::StrJoin(kKinds, ", ", [](std::string* out, const Kind& kind) { absl::StrAppend(out, kind.name); }),
      ", trace");
}

absl::Status NotAllowed(absl::string_view term, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("term \"", term, "\"; allowed: ", allowed));
}

// Returns the kind's name.
absl::StatusOr<absl::string_view> ReadTerm(absl::string_view term, StragglerModel* model) {
  if (absl::StartsWith(term, "x")) {
    if (!ReadFactor(term, &model->factor.emplace())) return NotAllowed(term, "x1 to x1000, as in x3");
    return "x";
  }
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(term, absl::MaxSplits('=', 1));
  for (const Kind& kind : kKinds) {
    if (kind.name != parts.first) continue;
    const bool has_values = parts.first.size() < term.size();
    const Values values = has_values ? Values(absl::StrSplit(parts.second, ',')) : Values();
    if (!kind.read(values, model)) return NotAllowed(term, kind.allowed);
    return kind.name;
  }
  return NotAllowed(term, KnownTerms());
}

// As many digits as give the same number again, and no exponent, whose sign could be taken for the next term.
std::string Number(double number) {
  std::array<char, 64> text;
  const auto result = std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  return std::string(text.data(), result.ptr);
}

std::string Factor(double factor) { return "x" + Number(factor); }

// What a worker draws, of the model.
void FormatDraws(const StragglerModel& model, std::vector<std::string>* terms) {
  if (const auto& mean = model.exponential_mean) terms->push_back("exp=" + absl::FormatDuration(*mean));
  if (const auto& pareto = model.pareto) {
    terms->push_back(absl::StrCat("pareto=", absl::FormatDuration(pareto->scale), ",", Number(pareto->shape)));
  }
  if (const auto& gamma = model.gamma) {
    terms->push_back(absl::StrCat("gamma=", absl::FormatDuration(gamma->mean), ",", Number(gamma->variation)));
  }
  if (model.spread.has_value()) terms->push_back("spread=" + Number(*model.spread));
  if (const auto& bimodal = model.bimodal) {
    terms->push_back(absl::StrCat("bimodal=", Factor(bimodal->factor), ",", Number(bimodal->probability)));
  }
  if (const auto& markov = model.markov) {
    terms->push_back(absl::StrCat("markov=", Factor(markov->factor), ",", Number(markov->probability), ",",
                                  markov->shortest, ",", markov->longest));
  }
}

}  // namespace

absl::StatusOr<StragglerModel> ParseStraggler(absl::string_view text) {
  StragglerModel model;
  std::set<absl::string_view> given;
  for (bool more = true; more;) {
    if (absl::ConsumePrefix(&text, kTrace)) {
      if (text.empty()) return NotAllowed(kTrace, "trace=FILE, a number of seconds in each line");
      model.trace = {std::string(text), nullptr};
      return model;
    }
    const size_t end = text.find('+');
    more = end != absl::string_view::npos;
    const absl::string_view term = text.substr(0, end);
    RUBATO_ASSIGN_OR_RETURN(const absl::string_view name, ReadTerm(term, &model));
    if (!given.insert(name).second) return NotAllowed(term, "each kind of term once");
    if (more) text.remove_prefix(end + 1);
  }
  return model;
}

std::string FormatStraggler(const StragglerModel& model) {
  std::vector<std::string> terms;
  if (model.factor.value_or(1) > 1) terms.push_back(Factor(*model.factor));
  if (model.sleep.has_value()) terms.push_back("sleep=" + absl::FormatDuration(*model.sleep));
  FormatDraws(model, &terms);
  if (model.rank.has_value()) {
    terms.push_back(*model.rank == StragglerModel::Rank::kSquareRoot ? "rank=sqrt" : "rank");
  }
  if (model.trace.has_value()) terms.push_back(absl::StrCat(kTrace, model.trace->path));
  return absl::StrJoin(terms, "+");
}

}  // namespace rubato
