#include "common/config/config_text.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/config/nearest_names.h"

namespace rubato {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

// Messages in messages: layers may hold layers. As many as a binary message may have.
constexpr int kMaxDepth = 100;

// Keeps the parser's errors instead of printing them, and says which fields may have been meant.
class ErrorCollector : public google::protobuf::io::ErrorCollector {
 public:
  ErrorCollector(absl::string_view file, const Descriptor* root) : file_(file), root_(root) {}

  // The parser counts from 0 and gives -1 if it has no position.
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    const std::string text = absl::StrCat(absl::StripSuffix(message, "."), Nearest(message));
    if (file_.empty() || line < 0) {
      errors_.push_back(text);
    } else {
      errors_.push_back(absl::StrCat(file_, ":", line + 1, ":", column + 1, ": ", text));
    }
  }

  absl::Status ToStatus() const {
    return absl::InvalidArgumentError(errors_.empty() ? "does not parse" : absl::StrJoin(errors_, "\n"));
  }

 private:
  // The parser tells the message type and the name in its text alone.
  std::string Nearest(const std::string& message) const {
    const std::vector<absl::string_view> parts = absl::StrSplit(message, '"');
    if (parts.size() != 5 || parts[0] != "Message type " || parts[2] != " has no field named ") return "";
    const Descriptor* type = root_->file()->pool()->FindMessageTypeByName(std::string(parts[1]));
    return type == nullptr ? "" : NearestFields(parts[3], type, root_);
  }

  const std::string file_;
  const Descriptor* const root_;
  std::vector<std::string> errors_;
};

}  // namespace

absl::Status ParseText(const std::string& text, absl::string_view file, Message* message) {
  ErrorCollector errors(file, message->GetDescriptor());
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(kMaxDepth);
  return parser.ParseFromString(text, message) ? absl::OkStatus() : errors.ToStatus();
}

absl::Status ParseFieldValue(const std::string& text, const FieldDescriptor* field, Message* message) {
  ErrorCollector errors("", message->GetDescriptor());
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(kMaxDepth);
  return parser.ParseFieldValueFromString(text, field, message) ? absl::OkStatus() : errors.ToStatus();
}

}  // namespace rubato
