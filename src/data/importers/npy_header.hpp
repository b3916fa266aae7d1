// The header of an .npy file: versions 1 to 3 of NEP 1 (https://numpy.org/neps/nep-0001-npy-format.html).
// Invariant: only what can be stored as it is comes through: rows in C order, little-endian, one of Lockstep's types.
// Used by the npy importer.
#pragma once

#include <cstdint>
#include <vector>

#include "core/dtype.hpp"
#include "data/importers/input.hpp"

namespace lockstep::data {

struct NpyHeader {
  core::DType dtype = core::DType::float32;
  std::vector<std::uint64_t> shape{};
  std::uint64_t bytes = 0;  ///< where the data begins
};

/// core::Error (usage) with the fix in NumPy's words: no .npy file, damaged, column order, big-endian, pickled objects,
/// other types. bool is read as uint8.
[[nodiscard]] NpyHeader read_npy_header(const Input& input);

}  // namespace lockstep::data
