#include "common/config/client_job.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/defaults.h"
#include "common/config/validate.h"
#include "common/shape.h"
#include "common/status.h"

namespace rubato {
namespace {

constexpr size_t kMaxDifferences = 3;

using Lines = std::vector<std::string>;

std::string TensorText(const v1::ManifestTensor& tensor) {
  return absl::StrCat("\"", absl::CHexEscape(tensor.name()), "\" ",
                      ShapeText(Shape(tensor.shape().begin(), tensor.shape().end())), " in group ", tensor.group());
}

std::string TensorAt(const v1::Manifest& manifest, int i) {
  return i < manifest.tensors_size() ? TensorText(manifest.tensors(i)) : "no tensor there";
}

std::string TableAt(const v1::Manifest& manifest, int i) {
  if (i >= manifest.tables_size()) return "no table there";
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(manifest.tables(i), &text);
  absl::StripTrailingAsciiWhitespace(&text);
  return absl::StrCat("{ ", text, " }");
}

std::string Difference(absl::string_view what, absl::string_view has, absl::string_view offered) {
  return absl::StrCat(what, ": ", has, ", but this worker has ", offered);
}

Lines ManifestDifferences(const v1::Manifest& has, const v1::Manifest& offered) {
  Lines lines;
  for (int i = 0; i < std::max(has.tensors_size(), offered.tensors_size()) && lines.size() < kMaxDifferences; ++i) {
    const std::string first = TensorAt(has, i), second = TensorAt(offered, i);
    if (first != second) lines.push_back(Difference(absl::StrCat("tensor ", i), first, second));
  }
  for (int i = 0; i < std::max(has.tables_size(), offered.tables_size()) && lines.size() < kMaxDifferences; ++i) {
    const std::string first = TableAt(has, i), second = TableAt(offered, i);
    if (first != second) lines.push_back(Difference(absl::StrCat("table ", i), first, second));
  }
  if (has.groups() != offered.groups()) {
    lines.push_back(Difference("groups", absl::StrCat(has.groups()), absl::StrCat(offered.groups())));
  }
  return lines;
}

std::string Join(Lines lines) {
  if (lines.size() > kMaxDifferences) lines.resize(kMaxDifferences);
  return absl::StrJoin(lines, "\n");
}

std::string AlgorithmText(const v1::OptimizerConfig& optimizer) {
  std::string text = v1::OptimizerConfig::Algorithm_Name(optimizer.algorithm());
  if (optimizer.algorithm() == v1::OptimizerConfig::ADAGRAD) {
    absl::StrAppend(&text, " with initial_accumulator ", optimizer.initial_accumulator());
  }
  return text;
}

std::string DataText(const v1::JobConfig& config) {
  if (config.data().dispatch() == v1::DataConfig::OWN) return "data of its own";
  return absl::StrCat(config.data().client().train_examples(), " leased examples in shards of ",
                      config.data().shard_examples(), ", ", config.training().epochs(), " epochs");
}

// What the offer would have made of the same config.
v1::JobConfig Offered(v1::JobConfig config, const v1::OfferModelRequest& offer) {
  *config.mutable_model()->mutable_manifest() = offer.manifest();
  *config.mutable_optimizer() = offer.optimizer();
  config.clear_data();
  *config.mutable_data()->mutable_client() = offer.data();
  if (offer.shard_examples() != 0) config.mutable_data()->set_shard_examples(offer.shard_examples());
  if (offer.epochs() != 0) config.mutable_training()->set_epochs(offer.epochs());
  FillDefaults(&config);
  return config;
}

}  // namespace

absl::StatusOr<v1::JobConfig> CompleteJobConfig(v1::JobConfig base, const v1::OfferModelRequest& offer) {
  if (!AwaitsModel(base)) {
    return absl::FailedPreconditionError("the job's config says what is trained; it awaits no client's model");
  }
  v1::JobConfig config = Offered(std::move(base), offer);
  RUBATO_RETURN_IF_ERROR(ValidateJobConfig(config));
  return config;
}

absl::StatusOr<v1::JobConfig> WithModelOf(v1::JobConfig base, const v1::JobConfig& complete) {
  *base.mutable_model() = complete.model();
  *base.mutable_data() = complete.data();
  *base.mutable_optimizer() = complete.optimizer();
  base.mutable_training()->set_epochs(complete.training().epochs());
  RUBATO_RETURN_IF_ERROR(ValidateJobConfig(base));
  return base;
}

std::string FirstDifferences(const v1::Manifest& has, const v1::Manifest& offered) {
  return Join(ManifestDifferences(has, offered));
}

std::string FirstDifferences(const v1::JobConfig& config, const v1::OfferModelRequest& offer) {
  const v1::JobConfig offered = Offered(config, offer);
  Lines lines = ManifestDifferences(config.model().manifest(), offer.manifest());
  const auto compare = [&](absl::string_view what, const std::string& has, const std::string& other) {
    if (has != other) lines.push_back(Difference(what, has, other));
  };
  compare("optimizer", AlgorithmText(config.optimizer()), AlgorithmText(offered.optimizer()));
  compare("data", DataText(config), DataText(offered));
  return Join(std::move(lines));
}

}  // namespace rubato
