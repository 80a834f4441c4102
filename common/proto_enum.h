#ifndef RUBATO_COMMON_PROTO_ENUM_H_
#define RUBATO_COMMON_PROTO_ENUM_H_

// Protocol Buffers adds two enumerators to each enum of a proto3 file, which stand for no value. A switch over such an
// enum has no `default:`, so that a value that is added and forgotten fails the build (-Wswitch); what it does with the
// values that a newer program may send, or that nobody set, stands behind it.
//
//   switch (mode) {
//     case v1::SYNC:
//       return "sync";
//     ...
//     case v1::MODE_UNSPECIFIED:
//     RUBATO_NO_VALUE_OF(v1::Mode):
//       break;
//   }
//   return "unknown";
//
// An enum within a message is named as protoc names it:
// RUBATO_NO_VALUE_OF(v1::DataConfig_Dispatch_DataConfig_Dispatch).
#define RUBATO_NO_VALUE_OF(Enum)            \
  case Enum##_INT_MIN_SENTINEL_DO_NOT_USE_: \
  case Enum##_INT_MAX_SENTINEL_DO_NOT_USE_

#endif  // RUBATO_COMMON_PROTO_ENUM_H_
