// compare_weights A.safetensors B.safetensors TOLERANCE: fails when the tensors differ by more than the tolerance,
// relative to the norm of each tensor of A.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

struct File {
  nlohmann::json header;
  std::string data;
};

File Read(const char* path) {
  std::ifstream stream(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  uint64_t length = 0;
  if (bytes.size() < 8) {
    std::cerr << path << ": not a safetensors file\n";
    std::exit(2);
  }
  std::memcpy(&length, bytes.data(), 8);
  return {nlohmann::json::parse(bytes.substr(8, length)), bytes.substr(8 + length)};
}

std::vector<float> Tensor(const File& file, const nlohmann::json& entry) {
  const size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
  std::vector<float> values((end - begin) / sizeof(float));
  std::memcpy(values.data(), file.data.data() + begin, end - begin);
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const File a = Read(argv[1]), b = Read(argv[2]);
  const double tolerance = std::atof(argv[3]);
  bool same = true;
  for (const auto& [name, entry] : a.header.items()) {
    if (name == "__metadata__") continue;
    const std::vector<float> x = Tensor(a, entry), y = Tensor(b, b.header.at(name));
    if (x.size() != y.size()) return 1;
    double difference = 0, norm = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      difference += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
      norm += double{x[i]} * x[i];
    }
    const double relative = std::sqrt(difference) / std::sqrt(norm);
    std::cout << name << ": relative difference " << relative << "\n";
    same = same && relative <= tolerance;
  }
  return same ? 0 : 1;
}
