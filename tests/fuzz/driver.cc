// Stands in for libFuzzer in an ordinary test: the corpus as it is, then a fixed number of mutations of it, all of them
// decided by the seed.
//
//   exchange_fuzzer --seed=1 --begin=123 --end=124 <corpus files>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "common/random.h"
#include "tests/fuzz/fuzz_target.h"

// The sanitizers' way to be told of their report; absent without them.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace rubato {
namespace {

constexpr size_t kLongestInput = 1 << 16;

struct Flags {
  uint64_t seed = 1;
  int64_t begin = 0;
  int64_t end = 20000;
  std::vector<std::string> files;
};

// For whoever reports a crash.
char replay[128] = "in the corpus\n";

void TellReplay() {
  const ssize_t ignored = write(STDERR_FILENO, replay, strlen(replay));
  static_cast<void>(ignored);
}

void OnSignal(int signal_number) {
  TellReplay();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void Try(const std::string& input) {
  // A buffer of its own, so that a sanitizer sees the first byte read past it.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

// A number that decoders stumble over.
std::string Interesting(Random* random) {
  static constexpr uint64_t kNumbers[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, 1ull << 63};
  const uint64_t number = kNumbers[random->Below(std::size(kNumbers))] + random->Below(3) - 1;
  return std::string(reinterpret_cast<const char*>(&number), 1 + random->Below(sizeof(number)));
}

std::string Piece(Random* random, const std::string& from) {
  if (from.empty()) return "";
  const size_t begin = random->Below(from.size());
  return from.substr(begin, 1 + random->Below(std::min<size_t>(from.size() - begin, 64)));
}

void Mutate(Random* random, const std::string& other, std::string* input) {
  const size_t at = random->Below(input->size() + 1);
  const size_t left = input->size() - at;
  switch (random->Below(6)) {
    case 0:
      if (left > 0) (*input)[at] = static_cast<char>(random->Next32());
      return;
    case 1:
      if (left > 0) (*input)[at] = static_cast<char>((*input)[at] ^ (1 << random->Below(8)));
      return;
    case 2:
      input->erase(at, 1 + random->Below(16));
      return;
    case 3:
      input->insert(at, Piece(random, random->Below(2) == 0 ? *input : other));
      return;
    case 4: {
      const std::string number = Interesting(random);
      input->replace(at, std::min(left, number.size()), number);
      return;
    }
    default:
      if (random->Below(8) == 0) *input = input->substr(0, at) + other.substr(random->Below(other.size() + 1));
      return;
  }
}

std::string MakeInput(const std::vector<std::string>& corpus, uint64_t seed, int64_t iteration) {
  Random random(seed, StreamId("fuzz", static_cast<uint64_t>(iteration)));
  std::string input = corpus[random.Below(corpus.size())];
  for (uint64_t left = 1 + random.Below(8); left > 0; --left) {
    Mutate(&random, corpus[random.Below(corpus.size())], &input);
  }
  input.resize(std::min(input.size(), kLongestInput));
  return input;
}

// The files, and those in folders, sorted.
std::vector<std::string> ListFiles(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

int Run(const Flags& flags) {
  for (const int signal_number : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS}) signal(signal_number, OnSignal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(TellReplay);
  std::vector<std::string> corpus;
  for (const std::string& file : ListFiles(flags.files)) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
      std::cerr << "cannot read " << file << std::endl;
      return 1;
    }
    corpus.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    Try(corpus.back());
  }
  if (corpus.empty()) {
    std::cerr << "the corpus is empty" << std::endl;
    return 1;
  }
  Try("");
  for (int64_t iteration = flags.begin; iteration < flags.end; ++iteration) {
    snprintf(replay, sizeof(replay), "replay with --seed=%llu --begin=%lld --end=%lld and the same files\n",
             static_cast<unsigned long long>(flags.seed), static_cast<long long>(iteration),
             static_cast<long long>(iteration + 1));
    Try(MakeInput(corpus, flags.seed, iteration));
  }
  std::cout << corpus.size() << " files and " << flags.end - flags.begin << " mutations of seed " << flags.seed
            << std::endl;
  return 0;
}

}  // namespace
}  // namespace rubato

int main(int argc, char** argv) {
  rubato::Flags flags;
  CLI::App app("Runs a fuzz target over a corpus and mutations of it");
  app.add_option("--seed", flags.seed, "Decides the mutations");
  app.add_option("--begin", flags.begin, "First mutation");
  app.add_option("--end", flags.end, "After the last mutation");
  app.add_option("files", flags.files, "The corpus: files, or folders of them")->required();
  CLI11_PARSE(app, argc, argv);
  return rubato::Run(flags);
}
