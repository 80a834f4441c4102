#ifndef RUBATO_COMMON_CONFIG_CONFIG_TEXT_H_
#define RUBATO_COMMON_CONFIG_CONFIG_TEXT_H_

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rubato {

// Paths of singular scalar fields that somebody wrote down, as in "model.layers[1].linear.units". It tells a written
// 0 (checked like any other value) from an absent field (which takes its default).
using FieldPaths = std::set<std::string>;

// "<parent>.<name>", or the name alone at the top.
std::string JoinFieldPath(absl::string_view parent, absl::string_view name);

// Parses protobuf text format into `message`, which is cleared first, and adds what was written to `written`.
// InvalidArgument "<file>:<line>:<column>: <why>" when the text does not parse or has an unknown field.
absl::Status ParseText(const std::string& text, absl::string_view file, google::protobuf::Message* message,
                       FieldPaths* written);

// Parses one field's value in text format into `message`: sets it, or appends to a repeated field. `path` is the
// field's own path. InvalidArgument with the parser's reason.
absl::Status ParseFieldValue(const std::string& text, const google::protobuf::FieldDescriptor* field,
                             absl::string_view path, google::protobuf::Message* message, FieldPaths* written);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_CONFIG_TEXT_H_
