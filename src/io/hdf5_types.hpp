// Element types of Lockstep and of HDF5.
// Invariant: files hold little-endian types; float16 is IEEE binary16 as h5py writes it; bfloat16 is uint16 with a
// mark.
// Used by io/hdf5_dataset and io/hdf5_file.
#pragma once

#include <optional>
#include <string>

#include "core/dtype.hpp"
#include "io/hdf5_library.hpp"

namespace lockstep::io {

/// An attribute of data sets of bfloat16, with the value "bfloat16".
inline constexpr const char* dtype_attribute = "lockstep_dtype";

[[nodiscard]] TypeId type_in_file(core::DType dtype);
[[nodiscard]] TypeId type_in_memory(core::DType dtype);

/// "text elements of 16 bytes"; an enumeration with its first members.
[[nodiscard]] std::string describe_elements(hid_t type);

/// Finds the type in either byte order; nothing if Lockstep lacks it. Never bfloat16.
[[nodiscard]] std::optional<core::DType> find_dtype(hid_t type);

}  // namespace lockstep::io
