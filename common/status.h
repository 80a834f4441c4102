#ifndef RUBATO_COMMON_STATUS_H_
#define RUBATO_COMMON_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// RUBATO_RETURN_IF_ERROR(expression);                     returns the expression's status when it is not OK.
#define RUBATO_RETURN_IF_ERROR(expression)           \
  do {                                               \
    absl::Status rubato_status_ = (expression);      \
    if (!rubato_status_.ok()) return rubato_status_; \
  } while (false)

// RUBATO_ASSIGN_OR_RETURN(auto value, expression);        the value of a StatusOr, or returns its status.
#define RUBATO_ASSIGN_OR_RETURN(declaration, expression) \
  RUBATO_ASSIGN_OR_RETURN_IMPL_(RUBATO_CONCAT_(rubato_or_, __LINE__), declaration, expression)
#define RUBATO_ASSIGN_OR_RETURN_IMPL_(result, declaration, expression) \
  auto result = (expression);                                          \
  if (!result.ok()) return std::move(result).status();                 \
  declaration = *std::move(result)
#define RUBATO_CONCAT_(a, b) RUBATO_CONCAT_IMPL_(a, b)
#define RUBATO_CONCAT_IMPL_(a, b) a##b

namespace rubato {

// The same code, with "<context>: " before the message. OK stays OK.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

}  // namespace rubato

#endif  // RUBATO_COMMON_STATUS_H_
