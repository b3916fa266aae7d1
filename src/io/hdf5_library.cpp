#include "io/hdf5_library.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>
#include <vector>

#include "core/log.hpp"
#include "core/shortage.hpp"
#include "io/hdf5.hpp"

namespace lockstep::io {
namespace {

/// Shortens "file write failed: time = ..., error message = 'No space left on device', buf = ...": drops details for
/// developers of the library, some of which change from run to run.
std::string shorten(std::string_view text) {
  constexpr std::string_view mark = "error message = '";
  const std::size_t begin = text.find(mark);
  if (begin == std::string_view::npos) return std::string{text};
  const std::string_view message = text.substr(begin + mark.size());
  return fmt::format("{}: {}", text.substr(0, text.find(": ")), message.substr(0, message.find('\'')));
}

/// The innermost error comes first, and causes the others.
herr_t take_first_reason(unsigned depth, const H5E_error2_t* error, void* reason) {
  if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(reason) = shorten(error->desc);
  return 0;
}

std::string last_reason() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first_reason, &reason);
  return reason.empty() ? "no reason given" : reason;
}

/// Adds a reference to the file and to everything open in it, so that closing our own closes nothing. Frees the file's
/// space on the disk, which is likely full, because the library keeps the file open.
void give_up(const Place& place) {
  if (is_given_up(place.new_file)) return;
  const ssize_t n = H5Fget_obj_count(place.new_file, H5F_OBJ_ALL);
  std::vector<hid_t> ids(n > 0 ? static_cast<std::size_t>(n) : 0);
  H5Fget_obj_ids(place.new_file, H5F_OBJ_ALL, ids.size(), ids.data());
  for (const hid_t id : ids) H5Iinc_ref(id);
  if (::truncate(place.path.c_str(), 0) != 0) core::log_warning(fmt::format("cannot truncate '{}'", place.path));
}

}  // namespace

Silence::Silence() noexcept {
  H5Eget_auto2(H5E_DEFAULT, &print_, &stream_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Silence::~Silence() { H5Eset_auto2(H5E_DEFAULT, print_, stream_); }

std::string describe(const Place& place) {
  return place.dataset.empty() ? fmt::format("'{}'", place.path)
                               : fmt::format("data set {} of '{}'", place.dataset, place.path);
}

void fail_hdf5(const Place& place, const std::string& action, core::SourceLocation location) {
  const std::string reason = last_reason();
  const std::string what = fmt::format("HDF5 cannot {}: {}", action, reason);
  if (place.new_file >= 0) give_up(place);
  core::refuse_shortage(fmt::format("HDF5 cannot {}", action), describe(place), core::shortage_in(reason));
  // Flags in formats since HDF5 1.10 say so, also when the writer was killed. A copy has them, too.
  if (place.code == core::ExitCode::usage && reason.find("h5clear") != std::string::npos)
    core::fail_usage(
        {.what = "the file is marked as open for writing: its writer was killed, or still runs",
         .where = describe(place),
         .expected = "a file that its writer has closed",
         .fix = fmt::format("wait for a writer that still runs (`fuser -v {0}` names it); if there is none, "
                            "clear the mark: h5clear -s {0}",
                            place.path)},
        location);
  if (place.code == core::ExitCode::usage) {
    core::fail_usage(
        {.what = what,
         .where = describe(place),
         .expected = "an intact HDF5 file",
         .fix = fmt::format("copy or make the file again; if an HDF5 newer than {} wrote it, use its earliest format",
                            hdf5_version())},
        location);
  }
  throw core::Error{place.code, {.what = what, .where = describe(place)}, location};
}

bool is_given_up(hid_t file) { return H5Iget_ref(file) > 1; }

void prepare_hdf5() {
  static const bool is_prepared = [] {
    // In newer versions the variable overrides turn_off_locks(); we have already locked what we write.
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);
    // We close what we open. At exit the library would try again to write what a full disk refused, and print errors.
    H5dont_atexit();
    const Silence silence;
    register_filters();
    return true;
  }();
  static_cast<void>(is_prepared);
}

std::string hdf5_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace lockstep::io
