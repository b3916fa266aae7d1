// Small networks with samples and parameters that PyTorch has been given too: one for each layer, and the models.
// Invariant: everything here equals its counterpart in golden/make_golden.py, whose results golden/*.txt hold.
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

/// One for each layer, in several forms where it has them.
[[nodiscard]] std::vector<Case> layer_cases();
/// Those of nn/models.hpp, on small inputs.
[[nodiscard]] std::vector<Case> model_cases();

/// Element `i` of the stream `seed`: in [-1, 1).
[[nodiscard]] double value(std::uint64_t seed, std::uint64_t i);
/// What the parameter with this index in Network::parameters() holds in all cases.
[[nodiscard]] std::vector<double> parameter_values(const Network& network, std::size_t index);

/// Values by "case label", such as "conv gradient:conv1.weight", of a file in golden/: "layers.txt" or "models.txt".
/// In models.txt, gradients and statistics are given by digest_of().
[[nodiscard]] std::map<std::string, std::vector<double>> read_golden(const std::string& file);
/// Sum of magnitudes, and sum of elements weighted by a fixed random vector.
[[nodiscard]] std::vector<double> digest_of(const std::vector<double>& values);

}  // namespace lockstep::nn
