// Byte pairs: what is accepted is written again as it was read, but for what is there for people, and encodes any text
// in tokens that stand for its bytes.
//
// Input: the file, whose bytes are the text as well.
#include <string>

#include "absl/strings/ascii.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"
#include "worker/data/byte_pairs/byte_pairs.h"

namespace rubato {
namespace {

using worker::BytePairs;

void CheckEncoding(const BytePairs& pairs, const std::string& text) {
  std::string decoded;
  pairs.Encode(text, [&](uint32_t token) {
    RUBATO_FUZZ_CHECK(token < pairs.size(), token);
    decoded += pairs.bytes(token);
  });
  RUBATO_FUZZ_CHECK(decoded == (pairs.lower_case() ? absl::AsciiStrToLower(text) : text), decoded);
}

}  // namespace
}  // namespace rubato

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rubato;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const MemoryFile file(text);
  const absl::StatusOr<BytePairs> pairs = BytePairs::Load(file.path());
  if (!pairs.ok()) return 0;
  CheckEncoding(*pairs, text);
  const MemoryFile written(pairs->Text());
  const absl::StatusOr<BytePairs> again = BytePairs::Load(written.path());
  RUBATO_FUZZ_CHECK(again.ok(), again.status());
  RUBATO_FUZZ_CHECK(again->Text() == pairs->Text(), pairs->Text());
  return 0;
}
