// How io/ calls the HDF5 library: owned identifiers, checked calls, and differences between its versions.
// Invariant: the library itself never prints; a failed call becomes one core::Error with the library's own reason.
// Used by io/hdf5_*.cpp only. Not thread-safe, like the library.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "core/handle.hpp"

namespace lockstep::io {

/// Keeps the library from printing its errors, while it lives.
class Silence {
 public:
  Silence() noexcept;
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* stream_ = nullptr;
};

template <herr_t (*close)(hid_t)>
struct IdPolicy {
  using Raw = hid_t;
  static Raw null() noexcept { return -1; }
  /// Closing a file closes what is open in it, so an identifier may be gone already.
  static void destroy(Raw raw) noexcept {
    const Silence silence;
    if (H5Iis_valid(raw) > 0) close(raw);
  }
};

using FileId = core::UniqueHandle<IdPolicy<&H5Fclose>>;
using DatasetId = core::UniqueHandle<IdPolicy<&H5Dclose>>;
using GroupId = core::UniqueHandle<IdPolicy<&H5Gclose>>;
using SpaceId = core::UniqueHandle<IdPolicy<&H5Sclose>>;
using TypeId = core::UniqueHandle<IdPolicy<&H5Tclose>>;
using ListId = core::UniqueHandle<IdPolicy<&H5Pclose>>;
using AttributeId = core::UniqueHandle<IdPolicy<&H5Aclose>>;

/// The subject of a call, for its error.
struct Place {
  core::ExitCode code = core::ExitCode::system;  ///< for failures: `usage` for files that existed before
  std::string path{};
  std::string dataset{};  ///< empty: the file itself
  hid_t new_file = -1;    ///< the file, if it is being written
};

[[nodiscard]] std::string describe(const Place& place);

/// Throws a core::Error with the library's reason for the call that failed last, and gives up a file that is being
/// written.
[[noreturn]] void fail_hdf5(const Place& place, const std::string& action, core::SourceLocation location);

/// Whether a call that wrote to the file has failed. Such a file is empty and is never closed: the library would try
/// the write again, and then use memory that it has freed (seen in 1.10.8).
[[nodiscard]] bool is_given_up(hid_t file);

/// Prepares the library on its first call, which must precede any other use of its names: registers our filters and
/// disables its work at exit.
void prepare_hdf5();

/// Registers our codecs as filters; throws core::Error (system) if the library refuses.
void register_filters();

/// Returns the result of `call()`, which calls the library; throws if it is negative. `action` completes "HDF5 cannot
/// ...".
template <class Call>
auto checked(const Place& place, const std::string& action, Call&& call,
             core::SourceLocation location = core::SourceLocation::current()) {
  prepare_hdf5();
  const Silence silence;
  const auto result = call();
  if (result < 0) fail_hdf5(place, action, location);
  return result;
}

// What depends on the version of the library.

/// Allows opening files on file systems without locks. Negative on failure.
herr_t turn_off_locks(hid_t access_list);

/// Calls `see(name, context)` for each data set below the root, with its name without the leading slash; a negative
/// result ends it. Follows links as `link_list` says. Negative on failure.
herr_t visit_datasets(hid_t file, hid_t link_list, herr_t (*see)(const char* name, void* context), void* context);

}  // namespace lockstep::io
