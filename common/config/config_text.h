#ifndef RUBATO_COMMON_CONFIG_CONFIG_TEXT_H_
#define RUBATO_COMMON_CONFIG_CONFIG_TEXT_H_

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rubato {

// Parses protobuf text format into `message`, which is cleared first.
// InvalidArgument "<file>:<line>:<column>: <why>" when the text does not parse or has an unknown field.
absl::Status ParseText(const std::string& text, absl::string_view file, google::protobuf::Message* message);

// Parses one field's value in text format into `message`: sets it, or appends to a repeated field.
// InvalidArgument with the parser's reason.
absl::Status ParseFieldValue(const std::string& text, const google::protobuf::FieldDescriptor* field,
                             google::protobuf::Message* message);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_CONFIG_TEXT_H_
