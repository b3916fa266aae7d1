// MATLAB 7.3 files: HDF5 whose arrays are transposed, as MATLAB stores the first dimension first and HDF5 the last.
// Invariant: a sample has the shape that MATLAB shows; its rows or its last dimension count the samples.
// Used by the HDF5 importer.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/importers/arrays.hpp"
#include "io/hdf5.hpp"

namespace lockstep::data {

[[nodiscard]] bool is_matlab_file(const std::string& path);

/// core::Error (usage) unless MATLAB's type of the array is numeric.
void require_matlab_numbers(const io::Hdf5Dataset& dataset, const std::string& place);

/// Along which dimension of the file samples lie.
enum class SamplesAlong { first, last };

/// Those of x and y that give as many samples, a single one only where nothing else does. Where both would: of a matrix
/// what MATLAB shows as rows, the last in the file; of more dimensions what MATLAB shows last, as it keeps images.
struct MatlabPair {
  SamplesAlong x = SamplesAlong::last;
  SamplesAlong y = SamplesAlong::last;
};
[[nodiscard]] MatlabPair match_matlab(const io::Dimensions& x, const io::Dimensions& y);

/// Dimensions as MATLAB has them, samples first. Labels lose those of 1.
[[nodiscard]] io::Dimensions matlab_dimensions(const io::Dimensions& in_file, SamplesAlong along, bool is_label);

/// "y: 1 x 100 in MATLAB, transposed and read as 100 samples of []"
[[nodiscard]] std::string describe_matlab(const std::string& name, const io::Dimensions& in_file,
                                          const io::Dimensions& as_read);

/// Samples [first, first + n) of the data set.
void read_matlab(const io::Hdf5Dataset& dataset, SamplesAlong along, std::uint64_t first, std::uint64_t n,
                 std::span<std::byte> data);

}  // namespace lockstep::data
