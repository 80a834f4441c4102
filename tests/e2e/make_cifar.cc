// make_cifar DIRECTORY [RECORDS]: writes files with the names and the format of CIFAR-10's binary version, for whoever
// has not got it. The pictures are generated, and are of nothing: each class has a pattern of stripes in its colours,
// which a picture shows shifted, brighter or darker, faint and under noise. RECORDS in each of the five training files,
// 2000 by default, and in the test file. The same ones every time. Files that exist are left alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numbers>
#include <string>

#include "common/random.h"

namespace {

constexpr int kClasses = 10, kSide = 32;

// Of one class.
struct Pattern {
  double across, down;
  std::array<double, 3> color;
};

Pattern PatternOf(int label) {
  rubato::Random random(1, rubato::StreamId("pattern", label));
  const double angle = std::numbers::pi * label / kClasses;
  const double waves = 2 + label % 3;
  Pattern pattern = {waves * std::cos(angle), waves * std::sin(angle), {}};
  for (double& part : pattern.color) part = random.Normal();
  return pattern;
}

std::string Record(rubato::Random* random) {
  const int label = static_cast<int>(random->Below(kClasses));
  const Pattern pattern = PatternOf(label);
  const double shift = random->Uniform(), strength = 15 + 30 * random->Uniform(), brightness = 30 * random->Normal();
  std::string record(1, static_cast<char>(label));
  for (double color : pattern.color) {
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        const double phase = (pattern.across * x + pattern.down * y) / kSide + shift;
        const double value = 128 + brightness + 35 * random->Normal() +
                             strength * (std::sin(2 * std::numbers::pi * phase) + 0.3 * color);
        record.push_back(static_cast<char>(static_cast<unsigned char>(std::min(255.0, std::max(0.0, value)))));
      }
    }
  }
  return record;
}

bool WriteFile(const std::string& path, int file, int records) {
  if (std::filesystem::exists(path)) {
    std::cout << path << " is there already\n";
    return true;
  }
  rubato::Random random(2, rubato::StreamId("pictures", file));
  std::ofstream stream(path, std::ios::binary);
  for (int i = 0; i < records; ++i) stream << Record(&random);
  stream.close();
  std::cout << path << ": " << records << " generated pictures, not those of CIFAR-10\n";
  return stream.good();
}

}  // namespace

int main(int argc, char** argv) {
  const int records = argc == 3 ? std::atoi(argv[2]) : 2000;
  if (argc < 2 || argc > 3 || records < 1) {
    std::cerr << "usage: make_cifar DIRECTORY [RECORDS]\n";
    return 2;
  }
  const std::string directory = argv[1];
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  bool good = !error && WriteFile(directory + "/test_batch.bin", 0, records);
  for (int file = 1; good && file <= 5; ++file) {
    good = WriteFile(directory + "/data_batch_" + std::to_string(file) + ".bin", file, records);
  }
  if (!good) std::cerr << "cannot write to " << directory << "\n";
  return good ? 0 : 1;
}
