#ifndef RUBATO_CLIENT_TESTING_JOB_H_
#define RUBATO_CLIENT_TESTING_JOB_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/rubato_client.h"

namespace rubato::client {

// Elements of the model's two tensors, "small" in group 0 and "large" in group 1.
inline constexpr int64_t kSmall = 3, kLarge = 70001;

// Ends the program with exit status 1.
[[noreturn]] void Fail(const std::string& why);

// A line on standard output, for the script that waits for it.
void Say(const char* what, int64_t number);

// A client of the library, and its calls if they are expected to end well: otherwise the program ends with the text
// of the error.
struct Job {
  const char* coordinator;
  uint32_t rank;
  const char* sidecar;
  // Reads each tensor's weights before the step begins, as soon as they are there.
  bool awaits = false;
  // Defines the model with keep_weights, and looks at the memory around rubato_begin.
  bool keeps = false;
  rubato_client* client = nullptr;
  // With `awaits`: how often what was read was void.
  int64_t moved = 0;
  // With `keeps`, by tensor: what the last step has begun with.
  std::vector<float> kept[2] = {};

  void Expect(rubato_result expected, rubato_result result, const char* what) const;
  void Open();
  // `leased`: examples of data that the coordinator leases; 0: none.
  rubato_result Define(rubato_algorithm algorithm, double rate, int64_t small = kSmall, int64_t leased = 0);
  void Start();
  // Until the call returns something else than RUBATO_AGAIN, 60 s at most.
  rubato_result Repeat(const char* what, const std::function<rubato_result()>& call) const;
  rubato_result Begin(rubato_step* step);
  rubato_result BeginKept(rubato_step* step);
  // The bits of the weights.
  std::vector<float> Weights(uint32_t tensor) const;
  void ExpectHas(uint32_t tensor, int expected) const;
  void Fill(uint32_t tensor, int64_t elements, const std::function<float(int64_t)>& value) const;
  void Push(uint32_t tensor, uint64_t examples) const;
  // With the bits of the value.
  void ExpectWeights(uint32_t tensor, int64_t elements, int64_t step, const std::function<float(int64_t)>& value) const;
  void Close();
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_TESTING_JOB_H_
