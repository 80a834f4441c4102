#include "common/config/overrides.h"

#include <google/protobuf/descriptor.h>

#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/config/config_text.h"
#include "common/config/nearest_names.h"
#include "common/status.h"

namespace rubato {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// One step of a path: "layers[1]" is {layers, 1}.
struct Segment {
  const FieldDescriptor* field = nullptr;
  std::optional<int> index;
};

std::string FieldNames(const Descriptor* descriptor) {
  std::vector<std::string> names;
  for (int i = 0; i < descriptor->field_count(); ++i) names.push_back(descriptor->field(i)->name());
  return names.empty() ? "no field" : absl::StrJoin(names, ", ");
}

std::string EnumNames(const google::protobuf::EnumDescriptor* descriptor) {
  std::vector<std::string> names;
  for (int i = 0; i < descriptor->value_count(); ++i) {
    if (descriptor->value(i)->number() != 0) names.push_back(descriptor->value(i)->name());
  }
  return absl::StrJoin(names, ", ");
}

template <typename T>
std::string IntegerRange() {
  return absl::StrCat("an integer from ", std::numeric_limits<T>::min(), " to ", std::numeric_limits<T>::max());
}

// What may stand after "=" for one value of the field.
std::string AllowedValues(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return IntegerRange<int32_t>();
    case FieldDescriptor::CPPTYPE_INT64:
      return IntegerRange<int64_t>();
    case FieldDescriptor::CPPTYPE_UINT32:
      return IntegerRange<uint32_t>();
    case FieldDescriptor::CPPTYPE_UINT64:
      return IntegerRange<uint64_t>();
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true, false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumNames(field->enum_type());
    case FieldDescriptor::CPPTYPE_STRING:
      return "text";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return absl::StrCat("{...} in text format, or one of its fields: ", FieldNames(field->message_type()));
  }
  return "nothing";
}

absl::Status Problem(absl::string_view problem, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(problem, "; allowed: ", allowed));
}

absl::StatusOr<Segment> ParseSegment(absl::string_view text, const Descriptor* descriptor) {
  const size_t bracket = text.find('[');
  const absl::string_view name = text.substr(0, bracket);
  Segment segment;
  segment.field = descriptor->FindFieldByName(std::string(name));
  if (segment.field == nullptr) {
    return Problem(absl::StrCat("no field \"", absl::CHexEscape(name), "\" in ", descriptor->name(),
                                NearestFields(name, descriptor, v1::JobConfig::descriptor())),
                   FieldNames(descriptor));
  }
  if (bracket == absl::string_view::npos) return segment;
  if (!segment.field->is_repeated()) {
    return Problem(absl::StrCat("\"", absl::CHexEscape(text), "\" has an index but is no list"), name);
  }
  absl::string_view index = text.substr(bracket + 1);
  int value = 0;
  if (!absl::ConsumeSuffix(&index, "]") || index.empty() || !absl::ascii_isdigit(index[0]) ||
      !absl::SimpleAtoi(index, &value)) {
    return Problem(absl::StrCat("index \"[", absl::CHexEscape(index), "\""),
                   "a number from 0 in brackets, as in layers[1]");
  }
  segment.index = value;
  return segment;
}

// The index must be that of an element or the one after.
absl::Status CheckIndex(const Message& message, const Segment& segment) {
  if (!segment.field->is_repeated()) return absl::OkStatus();
  if (!segment.index.has_value()) {
    return Problem(absl::StrCat(segment.field->name(), " is a list"),
                   absl::StrCat("an index, as in ", segment.field->name(), "[0]"));
  }
  const int size = message.GetReflection()->FieldSize(message, segment.field);
  if (*segment.index <= size) return absl::OkStatus();
  return Problem(absl::StrCat("index ", *segment.index, " of ", segment.field->name()),
                 absl::StrCat("0 to ", size, " (there are ", size, " now; ", size, " appends)"));
}

absl::StatusOr<Message*> Descend(Message* message, const Segment& segment) {
  const FieldDescriptor* field = segment.field;
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return Problem(absl::StrCat(field->name(), " has no fields"), AllowedValues(field));
  }
  RUBATO_RETURN_IF_ERROR(CheckIndex(*message, segment));
  const auto* reflection = message->GetReflection();
  if (!field->is_repeated()) return reflection->MutableMessage(message, field);
  if (*segment.index == reflection->FieldSize(*message, field)) return reflection->AddMessage(message, field);
  return reflection->MutableRepeatedMessage(message, field, *segment.index);
}

absl::Status SetField(const std::string& value, const Segment& segment, Message* message) {
  const FieldDescriptor* field = segment.field;
  const auto* reflection = message->GetReflection();
  if (value.empty() && !segment.index.has_value()) {
    reflection->ClearField(message, field);
    return absl::OkStatus();
  }
  RUBATO_RETURN_IF_ERROR(CheckIndex(*message, segment));
  std::string text = value;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) text = absl::StrCat("\"", absl::CEscape(value), "\"");
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) text = absl::AsciiStrToUpper(value);
  if (!field->is_repeated()) reflection->ClearField(message, field);
  absl::Status parsed = ParseFieldValue(text, field, message);
  if (!parsed.ok()) {
    return Problem(absl::StrCat("value ", absl::CHexEscape(value), " (", parsed.message(), ")"), AllowedValues(field));
  }
  if (field->is_repeated()) {
    // The value was appended: it changes places with the element that it replaces.
    const int last = reflection->FieldSize(*message, field) - 1;
    if (*segment.index < last) {
      reflection->SwapElements(message, field, *segment.index, last);
      reflection->RemoveLast(message, field);
    }
  }
  return absl::OkStatus();
}

absl::Status ApplyOverride(absl::string_view text, v1::JobConfig* config) {
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos) return Problem("no \"=\"", "path=value, as in training.epochs=3");
  Message* message = config;
  const std::vector<std::string> names = absl::StrSplit(text.substr(0, equals), '.');
  for (size_t i = 0; i < names.size(); ++i) {
    RUBATO_ASSIGN_OR_RETURN(Segment segment, ParseSegment(names[i], message->GetDescriptor()));
    if (i + 1 == names.size()) {
      return SetField(std::string(text.substr(equals + 1)), segment, message);
    }
    RUBATO_ASSIGN_OR_RETURN(message, Descend(message, segment));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyOverrides(const std::vector<std::string>& overrides, v1::JobConfig* config) {
  std::vector<std::string> errors;
  for (const std::string& text : overrides) {
    absl::Status status = ApplyOverride(text, config);
    if (!status.ok()) errors.push_back(absl::StrCat("--set ", absl::CHexEscape(text), ": ", status.message()));
  }
  if (errors.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
}

}  // namespace rubato
