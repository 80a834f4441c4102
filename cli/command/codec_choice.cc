#include "cli/command/codec_choice.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/config/fingerprint.h"
#include "common/config/load.h"
#include "common/status.h"

namespace rubato {
namespace {

absl::StatusOr<CodecChoice> ParseCodec(const std::string& text, const std::string& option) {
  CodecChoice choice;
  absl::string_view fraction = text;
  if (absl::ConsumePrefix(&fraction, "top_k:")) {
    choice.codec = v1::TOP_K;
    if (absl::SimpleAtod(fraction, &choice.fraction) && choice.fraction > 0 && choice.fraction <= 1) return choice;
  } else if (v1::Codec_Parse(absl::AsciiStrToUpper(text), &choice.codec) && choice.codec != v1::CODEC_UNSPECIFIED &&
             choice.codec != v1::TOP_K) {
    return choice;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      option, ": value \"", text, "\"; allowed: none, bf16, fp16, int8, one_bit, or top_k:F with F above 0 to 1"));
}

}  // namespace

std::string CodecChoice::Name() const {
  const std::string name = absl::AsciiStrToLower(v1::Codec_Name(codec));
  return codec == v1::TOP_K ? absl::StrCat(name, ":", fraction) : name;
}

absl::StatusOr<std::vector<CodecChoice>> ParseCodecs(const std::vector<std::string>& texts, const std::string& option) {
  std::vector<CodecChoice> codecs;
  for (const std::string& text : texts) {
    RUBATO_ASSIGN_OR_RETURN(CodecChoice codec, ParseCodec(text, option));
    for (const CodecChoice& other : codecs) {
      if (other.Name() == codec.Name()) {
        return absl::InvalidArgumentError(absl::StrCat(option, ": ", codec.Name(), " is given twice"));
      }
    }
    codecs.push_back(codec);
  }
  return codecs;
}

absl::StatusOr<v1::JobConfig> ConfigWithCodec(const v1::JobConfig& config, const CodecChoice& codec) {
  v1::JobConfig changed = config;
  v1::CompressionConfig* compression = changed.mutable_compression();
  compression->Clear();
  compression->mutable_push()->set_codec(codec.codec);
  if (codec.codec == v1::TOP_K) compression->mutable_push()->set_fraction(codec.fraction);
  const bool carries_weights = codec.codec != v1::TOP_K && codec.codec != v1::ONE_BIT;
  compression->mutable_pull()->set_codec(carries_weights ? codec.codec : v1::NONE);
  return ParseJobConfig(ConfigText(changed), absl::StrCat("the config with codec ", codec.Name()), {});
}

}  // namespace rubato
