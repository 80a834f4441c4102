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

  // The parser counts from 0 and gives -1 where it has no position.
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

void CollectMessage(const TextFormat::ParseInfoTree& tree, const Message& message, const std::string& path,
                    FieldPaths* written);

void CollectField(const TextFormat::ParseInfoTree& tree, const Message& message, const FieldDescriptor* field,
                  const std::string& path, FieldPaths* written) {
  const auto* reflection = message.GetReflection();
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    if (!field->is_repeated() && tree.GetLocation(field, -1).line >= 0) written->insert(path);
  } else if (!field->is_repeated()) {
    const TextFormat::ParseInfoTree* nested = tree.GetTreeForNested(field, -1);
    if (nested != nullptr) CollectMessage(*nested, reflection->GetMessage(message, field), path, written);
  } else {
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      const TextFormat::ParseInfoTree* nested = tree.GetTreeForNested(field, i);
      if (nested == nullptr) continue;
      CollectMessage(*nested, reflection->GetRepeatedMessage(message, field, i), absl::StrCat(path, "[", i, "]"),
                     written);
    }
  }
}

void CollectMessage(const TextFormat::ParseInfoTree& tree, const Message& message, const std::string& path,
                    FieldPaths* written) {
  const Descriptor* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    CollectField(tree, message, field, JoinFieldPath(path, field->name()), written);
  }
}

}  // namespace

std::string JoinFieldPath(absl::string_view parent, absl::string_view name) {
  return parent.empty() ? std::string(name) : absl::StrCat(parent, ".", name);
}

absl::Status ParseText(const std::string& text, absl::string_view file, Message* message, FieldPaths* written) {
  ErrorCollector errors(file, message->GetDescriptor());
  TextFormat::ParseInfoTree tree;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&tree);
  parser.SetRecursionLimit(kMaxDepth);
  if (!parser.ParseFromString(text, message)) return errors.ToStatus();
  CollectMessage(tree, *message, "", written);
  return absl::OkStatus();
}

absl::Status ParseFieldValue(const std::string& text, const FieldDescriptor* field, absl::string_view path,
                             Message* message, FieldPaths* written) {
  ErrorCollector errors("", message->GetDescriptor());
  TextFormat::ParseInfoTree tree;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&tree);
  parser.SetRecursionLimit(kMaxDepth);
  if (!parser.ParseFieldValueFromString(text, field, message)) return errors.ToStatus();
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    if (!field->is_repeated()) written->insert(std::string(path));
    return absl::OkStatus();
  }
  // The tree's only child is the value, whatever its place in a repeated field.
  const TextFormat::ParseInfoTree* nested = tree.GetTreeForNested(field, field->is_repeated() ? 0 : -1);
  if (nested == nullptr) return absl::OkStatus();
  const auto* reflection = message->GetReflection();
  const Message& value =
      field->is_repeated() ? reflection->GetRepeatedMessage(*message, field, reflection->FieldSize(*message, field) - 1)
                           : reflection->GetMessage(*message, field);
  CollectMessage(*nested, value, std::string(path), written);
  return absl::OkStatus();
}

}  // namespace rubato
