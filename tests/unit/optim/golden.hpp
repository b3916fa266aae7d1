// The golden files: cases of settings and values, and the parameters and gradients that golden/inputs.py makes.
// Invariant: exact in float32 in both languages, so that no file has to contain the inputs.
// Used by the tests of this folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::optim {

/// One line of values: `parameters 10 0.1 0.2`, or `lr 60 0.1`.
struct GoldenRow {
  std::string name;
  std::uint64_t at = 0;
  std::vector<double> values{};
};

struct GoldenCase {
  friend std::ostream& operator<<(std::ostream& out, const GoldenCase& golden) { return out << golden.name; }

  std::string name;
  std::map<std::string, std::string> settings{};
  std::vector<GoldenRow> rows{};

  [[nodiscard]] double number(const std::string& key, double otherwise) const {
    const auto found = settings.find(key);
    return found == settings.end() ? otherwise : std::stod(found->second);
  }
};

inline void read_line(std::vector<GoldenCase>& cases, const std::string& line) {
  std::istringstream words{line};
  std::string first, key;
  words >> first >> key;
  if (first == "case") {
    cases.push_back({.name = key});
  } else if (first == "set") {
    words >> std::ws;
    std::getline(words, cases.back().settings[key]);
  } else if (first != "#" && !first.empty()) {
    GoldenRow row{.name = first, .at = std::stoull(key)};
    for (double value = 0; words >> value;) row.values.push_back(value);
    cases.back().rows.push_back(std::move(row));
  }
}

inline std::vector<GoldenCase> read_golden(const std::string& file_name) {
  std::ifstream file{std::filesystem::path{__FILE__}.parent_path() / "golden" / file_name};
  std::vector<GoldenCase> cases;
  for (std::string line; std::getline(file, line);) read_line(cases, line);
  return cases;
}

/// Multiples of 2^-24 in [-0.5, 0.5).
class Uniform {
 public:
  explicit Uniform(std::uint32_t seed) : state_{seed} {}
  float next() {
    state_ = state_ * 1664525U + 1013904223U;
    return static_cast<float>(static_cast<double>(state_ >> 8) * 0x1p-24 - 0.5);
  }

 private:
  std::uint32_t state_;
};

inline const std::vector<std::size_t> golden_tensors{48, 1, 34};
inline constexpr std::size_t n_golden_elements = 83;
inline constexpr std::size_t n_golden_steps = 100;

struct GoldenInputs {
  std::vector<float> parameters{};
  std::vector<std::vector<float>> gradients{};  ///< by step
};

inline GoldenInputs make_golden_inputs() {
  Uniform uniform{1};
  GoldenInputs inputs;
  for (std::size_t i = 0; i < n_golden_elements; ++i) inputs.parameters.push_back(2 * uniform.next());
  inputs.gradients.resize(n_golden_steps);
  for (auto& gradient : inputs.gradients)
    for (std::size_t i = 0; i < n_golden_elements; ++i)
      gradient.push_back(i % 13 == 5 ? 0.0F : uniform.next() / static_cast<float>(1U << (i % 6)));
  return inputs;
}

inline double golden_rate(double lr, std::size_t step) { return lr * (static_cast<double>(200 - step) / 200); }

}  // namespace lockstep::optim
