// Our codecs as filters of the HDF5 library, so that it reads and writes zstd and lz4 without plugins.
// Invariant: the library's files and ours have the same bytes, because both call io/codecs.
// Used by io/hdf5_library.
#pragma once

namespace lockstep::io {

/// Throws core::Error (system) if the library refuses.
void register_filters();

}  // namespace lockstep::io
