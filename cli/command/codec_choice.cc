#include "cli/command/codec_choice.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/codec_traits.h"
#include "common/config/awaited_model.h"
#include "common/config/fingerprint.h"
#include "common/config/load.h"
#include "common/status.h"

namespace rubato {
namespace {

std::string NameOf(v1::Codec codec) { return absl::AsciiStrToLower(v1::Codec_Name(codec)); }

absl::StatusOr<CodecChoice> ParseCodec(const std::string& text, const std::string& option) {
  const std::string lower = absl::AsciiStrToLower(text);
  const std::pair<std::string, std::string> parts = absl::StrSplit(lower, absl::MaxSplits(':', 1));
  for (v1::Codec codec : AllCodecs()) {
    if (parts.first != NameOf(codec)) continue;
    CodecChoice choice = {codec, 0};
    const bool good = TraitsOf(codec).takes_fraction()
                          ? absl::SimpleAtod(parts.second, &choice.fraction) && IsCodecFraction(choice.fraction)
                          : parts.first == lower;
    if (good) return choice;
  }
  return absl::InvalidArgumentError(absl::StrCat(option, ": value \"", text, "\"; allowed: ", CodecChoices()));
}

}  // namespace

std::string CodecChoices() {
  std::string text;
  for (v1::Codec codec : AllCodecs()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", NameOf(codec), TraitsOf(codec).takes_fraction() ? ":F" : "");
  }
  return absl::StrCat(text, ", with F ", kCodecFractions);
}

std::string CodecChoice::Name() const {
  return TraitsOf(codec).takes_fraction() ? absl::StrCat(NameOf(codec), ":", fraction) : NameOf(codec);
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
  const CodecTraits& traits = TraitsOf(codec.codec);
  if (traits.takes_fraction()) compression->mutable_push()->set_fraction(codec.fraction);
  compression->mutable_pull()->set_codec(traits.valid_on_pull ? codec.codec : v1::NONE);
  return ParseJobConfig(ConfigText(changed), absl::StrCat("the config with codec ", codec.Name()), {},
                        {.may_await_model = AwaitsModel(config)});
}

}  // namespace rubato
