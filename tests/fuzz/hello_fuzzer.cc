// The packets with which tasks of one host meet in shared memory: what is accepted is of a worker or an evaluator, and
// is what its sender would write.
#include "common/shared_memory/hello.h"

#include "absl/strings/strip.h"
#include "tests/fuzz/fuzz_target.h"

namespace rubato {
namespace {

void CheckHello(const std::string& bytes) {
  const absl::StatusOr<v1::TaskId> task = DecodeHello(bytes);
  if (!task.ok()) {
    RUBATO_FUZZ_CHECK(absl::IsInvalidArgument(task.status()), task.status());
    return;
  }
  RUBATO_FUZZ_CHECK(task->role() == v1::TaskId::WORKER || task->role() == v1::TaskId::EVALUATOR, task->role());
  RUBATO_FUZZ_CHECK(task->incarnation() != 0, "no incarnation");
  RUBATO_FUZZ_CHECK(EncodeHello(*task) == bytes, "other bytes say the same");
}

void CheckWelcome(const std::string& bytes) {
  const absl::StatusOr<uint64_t> session = DecodeWelcome(bytes);
  if (session.ok()) {
    RUBATO_FUZZ_CHECK(*session != 0, "no session");
    RUBATO_FUZZ_CHECK(*DecodeWelcome(EncodeWelcome(*session)) == *session, *session);
    return;
  }
  absl::string_view message = session.status().message();
  if (!absl::ConsumePrefix(&message, "refused: ")) return;
  const absl::Status again = DecodeWelcome(EncodeWelcome(absl::Status(session.status().code(), message))).status();
  RUBATO_FUZZ_CHECK(again.code() == session.status().code(), again);
  RUBATO_FUZZ_CHECK(session.status().message().substr(0, again.message().size()) == again.message(), again);
}

}  // namespace
}  // namespace rubato

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  rubato::CheckHello(bytes);
  rubato::CheckWelcome(bytes);
  return 0;
}
