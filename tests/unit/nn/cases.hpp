// Small networks with samples and parameters that PyTorch was also given: one for each layer, and the models.
// Invariant: everything here equals its counterpart in golden/make_golden.py; golden/*.txt have its results.
// Used by the tests of the reference and of backends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "unit/nn/reference.hpp"

namespace lockstep::nn {

struct Case {
  std::string name;
  Network network;
  ReferenceBatch batch{};
  ReferenceOptions options{};
};

/// One for each layer, in all its forms.
[[nodiscard]] std::vector<Case> layer_cases();
/// The models of nn/graph/models.hpp, on small inputs.
[[nodiscard]] std::vector<Case> model_cases();

/// Element `i` of the stream `seed`: in [-1, 1).
[[nodiscard]] double value(std::uint64_t seed, std::uint64_t i);
/// The values, in all cases, of the parameter with this index in Network::parameters().
[[nodiscard]] std::vector<double> parameter_values(const Network& network, std::size_t index);

/// Values by "case label", such as "conv gradient:conv1.weight", of a file in golden/: "layers.txt" or "models.txt".
/// models.txt has gradients and statistics as digest_of().
[[nodiscard]] std::map<std::string, std::vector<double>> read_golden(const std::string& file);
/// The sum of magnitudes, and the sum of elements weighted by a fixed random vector.
[[nodiscard]] std::vector<double> digest_of(const std::vector<double>& values);

}  // namespace lockstep::nn
