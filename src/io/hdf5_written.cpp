#include "io/hdf5_written.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "core/units.hpp"
#include "io/hdf5_origin.hpp"

namespace lockstep::io {
namespace {

/// How much of a data set was written. A contiguous one counts as one piece; a virtual one counts values.
struct Written {
  const char* pieces = "values";
  std::uint64_t n_pieces = 0;
  std::uint64_t n_missing = 0;
  std::string first_missing{};  ///< ", the first of them at row 7"
};

std::vector<hsize_t> sizes_of(const Place& place, hid_t space) {
  std::vector<hsize_t> sizes(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  checked(place, "read the shape", [&] { return H5Sget_simple_extent_dims(space, sizes.data(), nullptr); });
  return sizes;
}

void refuse_large_chunks(const Place& place, hid_t dataset, const std::vector<hsize_t>& chunk) {
  constexpr std::uint64_t largest = std::uint64_t{256} << 20;
  const TypeId type{checked(place, "read the element type", [&] { return H5Dget_type(dataset); })};
  std::uint64_t bytes = H5Tget_size(type.get());
  for (const hsize_t n : chunk)
    if (__builtin_mul_overflow(bytes, n, &bytes)) bytes = UINT64_MAX;
  if (bytes <= largest) return;
  core::fail_usage(
      {.what = fmt::format("its chunks have {} each", core::format_bytes({bytes})),
       .where = describe(place),
       .expected = fmt::format("at most {}: the library reads chunks as a whole", core::format_bytes({largest})),
       .fix = "write it again with chunks of a few MiB, for example with h5repack"});
}

/// For a data set that lacks chunks. Looks up one chunk more than were written, in the order of the rows.
hsize_t first_missing_row(hid_t dataset, const std::vector<hsize_t>& sizes, const std::vector<hsize_t>& chunk) {
  const Silence silence;
  std::vector<hsize_t> offset(sizes.size(), 0);
  for (hsize_t bytes = 0; offset.front() < sizes.front();) {
    if (H5Dget_chunk_storage_size(dataset, offset.data(), &bytes) < 0 || bytes == 0) break;
    for (std::size_t i = offset.size(); i-- > 0;) {
      offset[i] += chunk[i];
      if (offset[i] < sizes[i] || i == 0) break;
      offset[i] = 0;
    }
  }
  return offset.front();
}

Written find_written_chunks(const Place& place, hid_t dataset, hid_t space, hid_t list) {
  const std::vector<hsize_t> sizes = sizes_of(place, space);
  std::vector<hsize_t> chunk(sizes.size());
  checked(place, "read the layout", [&] { return H5Pget_chunk(list, static_cast<int>(chunk.size()), chunk.data()); });
  refuse_large_chunks(place, dataset, chunk);
  Written written{.pieces = "chunks", .n_pieces = 1};
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    const std::uint64_t along = sizes[i] / chunk[i] + (sizes[i] % chunk[i] != 0 ? 1 : 0);
    if (__builtin_mul_overflow(written.n_pieces, along, &written.n_pieces)) written.n_pieces = UINT64_MAX;
  }
  hsize_t n_there = 0;
  checked(place, "count the chunks", [&] { return H5Dget_num_chunks(dataset, space, &n_there); });
  if (n_there >= written.n_pieces) return written;
  written.n_missing = written.n_pieces - n_there;
  written.first_missing = fmt::format(", the first of them at row {}", first_missing_row(dataset, sizes, chunk));
  return written;
}

/// Data sets that were already examined, because a virtual one may have parts of itself.
using Seen = std::set<std::string>;
constexpr std::size_t most_seen = 10'000;

std::string require_written_within(const Place& place, hid_t dataset, Unwritten unwritten, Seen& seen);

/// How many of the `n` values that a part of a virtual data set needs exist in its source.
std::uint64_t n_within(const Place& place, hid_t dataset, hid_t wanted, std::uint64_t n) {
  const SpaceId space{checked(place, "read the shape", [&] { return H5Dget_space(dataset); })};
  const auto n_all = static_cast<std::uint64_t>(std::max<hssize_t>(H5Sget_simple_extent_npoints(space.get()), 0));
  const Silence silence;
  if (n_all == 0 || H5Sget_select_type(wanted) != H5S_SEL_HYPERSLABS) return std::min(n, n_all);
  const std::vector<hsize_t> sizes = sizes_of(place, space.get()), first(sizes.size(), 0);
  if (H5Sget_simple_extent_ndims(wanted) != static_cast<int>(sizes.size())) return n;  // reading it reports the error
  const SpaceId there{H5Scopy(wanted)};
  if (H5Sselect_hyperslab(there.get(), H5S_SELECT_AND, first.data(), nullptr, sizes.data(), nullptr) < 0) return n;
  const hssize_t n_there = H5Sget_select_npoints(there.get());
  return n_there < 0 ? n : static_cast<std::uint64_t>(n_there);
}

/// Finds values that no source has, or that a source itself lacks.
Written find_mapped_values(const Place& place, hid_t dataset, std::uint64_t n_values, hid_t list) {
  std::size_t n_sources = 0;
  checked(place, "read its sources", [&] { return H5Pget_virtual_count(list, &n_sources); });
  std::uint64_t n_mapped = 0;
  for (std::size_t i = 0; i < n_sources; ++i) {
    const SpaceId part{checked(place, "read its sources", [&] { return H5Pget_virtual_vspace(list, i); })};
    const SpaceId wanted{checked(place, "read its sources", [&] { return H5Pget_virtual_srcspace(list, i); })};
    const hssize_t n = [&] {
      const Silence silence;
      return H5Sget_select_npoints(part.get());
    }();
    if (n < 0) return {};  // the number depends on the number of blocks
    const VirtualSource source = open_virtual_source(place, dataset, list, i);
    if (source.is_elsewhere)
      n_mapped += static_cast<std::uint64_t>(n);
    else if (source.dataset)
      n_mapped += n_within(place, source.dataset.get(), wanted.get(), static_cast<std::uint64_t>(n));
  }
  return {.n_pieces = n_values, .n_missing = n_mapped < n_values ? n_values - n_mapped : 0};
}

/// Returns what the sources of a virtual data set lack: one sentence for each.
std::string require_written_sources(const Place& place, hid_t dataset, hid_t list, Unwritten unwritten, Seen& seen) {
  std::size_t n_sources = 0;
  checked(place, "read its sources", [&] { return H5Pget_virtual_count(list, &n_sources); });
  std::string lacking;
  for (std::size_t i = 0; i < n_sources; ++i) {
    const VirtualSource source = open_virtual_source(place, dataset, list, i);
    if (!source.dataset || seen.size() > most_seen || !seen.insert(describe(source.place)).second) continue;
    const std::string missing = require_written_within(source.place, source.dataset.get(), unwritten, seen);
    if (missing.empty()) continue;
    lacking += fmt::format("{}its part {}: {}", lacking.empty() ? "" : "; ", source.place.dataset, missing);
  }
  return lacking;
}

/// How many of the `bytes` of a data set its external files lack, for which the library gives zeros, or fails. With a
/// prefix it looks for them elsewhere; then nothing is known to be missing.
std::uint64_t bytes_missing_outside(const Place& place, hid_t list, std::uint64_t bytes) {
  const int n_files = checked(place, "read the layout", [&] { return H5Pget_external_count(list); });
  if (std::getenv("HDF5_EXTFILE_PREFIX") != nullptr) return 0;
  std::uint64_t n_missing = 0;
  for (int i = 0; i < n_files; ++i) {
    std::array<char, 4096> name{};
    off_t offset = 0;
    hsize_t size = 0;
    checked(place, "read the layout", [&] {
      return H5Pget_external(list, static_cast<unsigned>(i), name.size() - 1, name.data(), &offset, &size);
    });
    std::error_code none;
    const std::uint64_t n_all = std::filesystem::file_size(name.data(), none);
    const std::uint64_t n_there = none ? 0 : n_all - std::min(n_all, static_cast<std::uint64_t>(offset));
    const std::uint64_t n_needed = std::min<std::uint64_t>(size, bytes);
    n_missing += n_needed - std::min(n_needed, n_there);
    bytes -= n_needed;
  }
  return n_missing;
}

Written find_written(const Place& place, hid_t dataset, hid_t list) {
  const SpaceId space{checked(place, "read the shape", [&] { return H5Dget_space(dataset); })};
  const hssize_t n_values = H5Sget_simple_extent_npoints(space.get());
  const H5D_layout_t layout = H5Pget_layout(list);
  if (n_values <= 0 || layout == H5D_COMPACT) return {};
  const auto n = static_cast<std::uint64_t>(n_values);
  if (layout == H5D_CHUNKED) return find_written_chunks(place, dataset, space.get(), list);
  if (layout == H5D_VIRTUAL) return find_mapped_values(place, dataset, n, list);
  const TypeId type{checked(place, "read the element type", [&] { return H5Dget_type(dataset); })};
  const std::uint64_t bytes = std::max<std::uint64_t>(H5Tget_size(type.get()), 1);
  const std::uint64_t n_missing = bytes_missing_outside(place, list, n * bytes);
  return {.n_pieces = n, .n_missing = H5Dget_storage_size(dataset) > 0 ? (n_missing + bytes - 1) / bytes : n};
}

/// The library's value for missing ones; empty if it would return undefined memory.
std::string fill_value(hid_t dataset, hid_t list) {
  const Silence silence;
  H5D_fill_value_t kind = H5D_FILL_VALUE_UNDEFINED;
  H5D_fill_time_t when = H5D_FILL_TIME_NEVER;
  if (H5Pfill_value_defined(list, &kind) < 0 || kind == H5D_FILL_VALUE_UNDEFINED) return "";
  if (H5Pget_fill_time(list, &when) < 0 || when == H5D_FILL_TIME_NEVER) return "";
  const TypeId type{H5Dget_type(dataset)};
  const H5T_class_t of = H5Tget_class(type.get());
  double value = 0;
  const bool is_number =
      (of == H5T_INTEGER || of == H5T_FLOAT) && H5Pget_fill_value(list, H5T_NATIVE_DOUBLE, &value) >= 0;
  return is_number ? fmt::format("the fill value {}", value) : "the fill value";
}

/// As require_written, but without what sources themselves lack.
std::string require_pieces(const Place& place, hid_t dataset, hid_t list, Unwritten unwritten) {
  const Written written = find_written(place, dataset, list);
  if (written.n_missing == 0) return "";
  const std::string fill = fill_value(dataset, list);
  const bool is_nothing = written.n_missing == written.n_pieces;
  const std::string missing =
      fmt::format("{} of its {} {} {} never written{}", written.n_missing, written.n_pieces, written.pieces,
                  written.n_missing == 1 ? "was" : "were", written.first_missing);
  if (unwritten == Unwritten::fill_value && !fill.empty() && !is_nothing) return fmt::format("{}: {}", missing, fill);
  core::fail_usage({.what = is_nothing ? "no part of it was ever written: " + missing : missing,
                    .where = describe(place),
                    .expected = "data in all of it: its writer may have been stopped, or is still at work",
                    .fix = is_nothing || fill.empty()
                               ? "write the values, or shrink the data set to its content"
                               : fmt::format("write the rest, or shrink the data set to its content; if {} is data, "
                                             "use `lockstep shard import hdf5` with --allow-unwritten",
                                             fill)});
}

/// Space that was allocated early, as in parallel HDF5, looks as if it were written.
std::string doubt_early_room(hid_t list) {
  const Silence silence;
  H5D_alloc_time_t when = H5D_ALLOC_TIME_DEFAULT;
  const bool is_early =
      H5Pget_layout(list) != H5D_COMPACT && H5Pget_alloc_time(list, &when) >= 0 && when == H5D_ALLOC_TIME_EARLY;
  return is_early ? "its room was allocated early, so that the file does not tell whether all of it was written" : "";
}

std::string require_written_within(const Place& place, hid_t dataset, Unwritten unwritten, Seen& seen) {
  const ListId list{checked(place, "read the layout", [&] { return H5Dget_create_plist(dataset); })};
  if (H5Pget_layout(list.get()) == H5D_VIRTUAL) {
    const std::string lacking = require_written_sources(place, dataset, list.get(), unwritten, seen);
    const std::string missing = require_pieces(place, dataset, list.get(), unwritten);
    return lacking.empty() || missing.empty() ? lacking + missing : fmt::format("{}; {}", missing, lacking);
  }
  const std::string missing = require_pieces(place, dataset, list.get(), unwritten);
  return missing.empty() ? doubt_early_room(list.get()) : missing;
}

}  // namespace

std::string require_written(const Place& place, hid_t dataset, Unwritten unwritten) {
  Seen seen{describe(place)};
  return require_written_within(place, dataset, unwritten, seen);
}

core::Descriptor lock_for_reading(const Place& place) {
  core::Descriptor file{::open(place.path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file || flock(file.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return file;
  core::fail_usage({.what = "another program has the file open for writing",
                    .where = describe(place),
                    .expected = "a file that its writer has closed: until then it is incomplete",
                    .fix = fmt::format("wait for that program, or end it (`fuser -v {}` names it)", place.path)});
}

}  // namespace lockstep::io
