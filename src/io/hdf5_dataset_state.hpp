// The state of an open data set, and how it is made.
// Invariant: dimensions, element type and chunking never change while it is open.
// Used by io/hdf5_dataset and io/hdf5_file.
#pragma once

#include <memory>

#include "io/hdf5.hpp"
#include "io/hdf5_library.hpp"

namespace lockstep::io {

struct Hdf5Dataset::State {
  Place place;
  DatasetId id;
  Dimensions dimensions{};
  Dimensions chunk{};  ///< empty if it is not chunked
  std::optional<core::DType> dtype{};
  std::uint64_t row_bytes = 0;  ///< in memory; 0 if Lockstep lacks the element type

  /// Describes a data set that was just created or opened.
  [[nodiscard]] static std::unique_ptr<State> describe(Place place, DatasetId id);

  /// A selection of rows [first, first + n), in memory and in the file.
  struct Rows {
    SpaceId memory;
    SpaceId file;
  };
  /// Selects rows, or ranges of another dimension.
  [[nodiscard]] Rows select(std::uint64_t first, std::uint64_t n, const std::string& action,
                            std::size_t dimension = 0) const;
  /// Reads numbers.
  void read(std::uint64_t first, std::uint64_t n, std::size_t dimension, std::span<std::byte> data) const;

  [[nodiscard]] std::uint64_t n_rows() const noexcept { return dimensions.empty() ? 0 : dimensions.front(); }
  [[nodiscard]] std::uint64_t n_chunks() const noexcept {
    return chunk.empty() ? 0 : n_rows() / chunk.front() + (n_rows() % chunk.front() != 0 ? 1 : 0);
  }
};

}  // namespace lockstep::io
